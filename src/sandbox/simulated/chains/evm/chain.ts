import { hexToBytes } from '../../../../engine/crypto/encoding.ts';
import { BATCH_EXECUTOR_ADDRESS } from '../../../../engine/signing/ethereum/batch-executor.ts';
import { checksumAddress } from '../../../../engine/signing/ethereum/signer.ts';
import {
  ENTRY_POINT_ADDRESS,
  SIMPLE_ACCOUNT_ADDRESS,
} from '../../../../engine/signing/ethereum/simple-account.ts';
import type { EvmChain, TransferQuery } from '../../../../ports/chains.ts';
import { termsOf } from '../chain-terms.ts';
import { assertNodeAvailable, decodeOrRefuse } from '../decode-or-refuse.ts';
import { NATIVE, RevertError } from '../ledger.ts';
import { PAYMASTER_ADDRESS, tempoChains } from '../sponsors.ts';
import {
  knownToken,
  movementsOf,
  type Simulated,
  transfersAfter,
  transfersOf,
  type World,
} from '../world.ts';
import { acceptTransaction } from './accept-transaction.ts';
import { simulateBundler } from './bundler.ts';
import { dryRun, dryRunAll } from './dry-run.ts';
import { fundEvm } from './faucet.ts';
import { type EvmParts, makeEvmParts } from './parts.ts';
import { decodeSigned } from './plan.ts';
import { isWrappedNative, programAt } from './programs/find-program.ts';
import type { ProgramView } from './programs/program.ts';
import { answerTokenQuery } from './token-queries.ts';

/** Contracts deployed on every simulated chain. */
const CONTRACTS: ReadonlySet<string> = new Set([
  BATCH_EXECUTOR_ADDRESS,
  SIMPLE_ACCOUNT_ADDRESS,
  ENTRY_POINT_ADDRESS,
  PAYMASTER_ADDRESS,
]);

/** One simulated EVM chain. Addresses are lower-case hex internally. */
export function simulateEvm(world: World, caip2: string): Simulated<EvmChain> {
  const parts = makeEvmParts(world, caip2);
  const { state, blocks } = parts;
  const { ledger } = state;
  return {
    chain: {
      kind: 'evm',
      caip2,
      chainId: state.chainId,
      ...(tempoChains.has(caip2) ? {} : { bundler: simulateBundler(parts) }),
      ...queries(parts),
      ...transactions(parts),
      ...transferLists(parts),
    },
    ledger,
    decimalsOf: (tokenAddress) =>
      tokenAddress === null ? 18 : tokenOf(parts, tokenAddress.toLowerCase())?.decimals,
    fund: (deposit) => fundEvm(parts, deposit),
    head: () => blocks.head(),
    view: () => ({ state, block: blocks.head() }),
    mine: (count) => state.store.atomically(() => blocks.mine(count)),
  };
}

/** Queries on the latest state. */
function queries(
  parts: EvmParts,
): Pick<
  EvmChain,
  'balances' | 'nonce' | 'fees' | 'latestSeconds' | 'simulate' | 'simulateSequence' | 'read' | 'code'
> {
  const { caip2, state, blocks, atHead } = parts;
  const { accounts, ledger } = state;
  const { baseFee, priorityFee } = termsOf(caip2);
  return {
    balances: (address, tokens) =>
      atHead(() =>
        tokens.map((token) => ledger.balance(address.toLowerCase(), token?.toLowerCase() ?? NATIVE)),
      ),
    nonce: (address) => atHead(() => BigInt(nextNonce(parts, address.toLowerCase()))),
    fees: async () => ({ maxFeePerGas: 2n * baseFee + priorityFee, maxPriorityFeePerGas: priorityFee }),
    latestSeconds: () => atHead(() => parts.blocks.head().seconds),
    simulate: (call) => atHead(() => dryRun(state, blocks.head(), call)),
    simulateSequence: (calls) => atHead(() => dryRunAll(state, blocks.head(), calls)),
    read: ({ to, data }) =>
      atHead(() => {
        const address = to.toLowerCase();
        return (
          readProgram({ state, block: blocks.head() }, address, data) ??
          answerTokenQuery({ token: tokenOf(parts, address), to: address, data, state })
        );
      }),
    code: (address) =>
      atHead(() => {
        const key = address.toLowerCase();
        const delegate = accounts.delegate(key);
        if (delegate !== undefined) return hexToBytes(`ef0100${delegate.slice(2)}`);
        const isContract =
          CONTRACTS.has(key) || programAt(state, key) !== undefined || tokenOf(parts, key) !== undefined;
        // CHOICE: simulated contracts have no bytecode; this returns INVALID, the code of a contract that always fails.
        return isContract ? Uint8Array.of(0xfe) : new Uint8Array();
      }),
  };
}

function transactions(parts: EvmParts): Pick<EvmChain, 'broadcast' | 'statusOf'> {
  const { world, state, pool, blocks, atHead } = parts;
  return {
    async broadcast(signedBytes) {
      const decoded = await decodeOrRefuse(() => decodeSigned(signedBytes));
      if ('isAccepted' in decoded) return decoded;
      assertNodeAvailable(decoded.plan.sentinel);
      return atHead(() => acceptTransaction(parts, decoded));
    },
    async statusOf(hash, signedBytes) {
      const { plan, lane, nonce } = await decodeSigned(signedBytes);
      return atHead(() => {
        const status = pool.status(hash, blocks);
        if (status !== undefined && status.kind !== 'unknown') return status;
        const isNonceUsed = nonce < BigInt(state.accounts.nonce(plan.sender, lane));
        const isExpired = plan.validBefore !== null && world.clock.now() >= plan.validBefore * 1000;
        if (!isNonceUsed) return { kind: 'unknown', isExpired };
        return { kind: 'replaced', byHash: pool.ofNonce(plan.sender, lane, Number(nonce)) };
      });
    },
  };
}

function transferLists({
  world,
  caip2,
  atHead,
}: EvmParts): Pick<EvmChain, 'transfersOf' | 'transfersAfter' | 'movementsOf'> {
  return {
    movementsOf: (hash) => atHead(() => movementsOf(world, caip2, { hash, text: checksummed })),
    transfersOf: (query) =>
      atHead(() => transfersOf(world, caip2, { query: lowerCase(query), text: checksummed })),
    transfersAfter: (reading) => atHead(() => transfersAfter(world, caip2, { reading, text: checksummed })),
  };
}

function nextNonce({ state, pool }: EvmParts, address: string): number {
  let next = state.accounts.nonce(address, '');
  for (const entry of pool.waiting(address, '')) if (entry.nonce === next) next += 1;
  return next;
}

function tokenOf({ world, caip2, state }: EvmParts, address: string) {
  const token = state.accounts.token(address) ?? knownToken(world, caip2, address);
  if (token !== undefined || !isWrappedNative(state, address)) return token;
  return { decimals: 18, symbol: `W${world.nativeSymbol(caip2).toUpperCase()}` };
}

/** What a program returns; nothing when it reverts, as the call of a node. Undefined for other addresses. */
function readProgram(view: ProgramView, address: string, data: Uint8Array): Uint8Array | undefined {
  try {
    return programAt(view.state, address)?.read(view, data);
  } catch (error) {
    if (error instanceof RevertError) return new Uint8Array();
    throw error;
  }
}

function lowerCase(query: TransferQuery): TransferQuery {
  const tokenAddresses = query.tokenAddresses.map((token) => token?.toLowerCase() ?? null);
  return { ...query, address: query.address.toLowerCase(), tokenAddresses };
}

function checksummed(address: string): string {
  return checksumAddress(address.slice(2));
}
