import { bytesTo0xHex, bytesToUtf8, hexToBytes } from '../../../../engine/crypto/encoding.ts';
import { loadOnce } from '../../../../engine/load-once.ts';
import { encodeTokenCall } from '../../../../engine/signing/ethereum/contract-calls.ts';
import { checksumAddress } from '../../../../engine/signing/ethereum/signer.ts';
import type { EvmChain, TransferQuery } from '../../../../ports/chains.ts';
import { termsOf } from '../chain-terms.ts';
import { assertNodeAvailable, decodeOrRefuse } from '../decode-or-refuse.ts';
import { NATIVE } from '../ledger.ts';
import { tempoChains } from '../sponsors.ts';
import { movementsOf, type Simulated, transfersAfter, transfersOf, type World } from '../world.ts';
import { acceptTransaction, nextNonce } from './accept-transaction.ts';
import { tokenAt } from './contracts/tokens.ts';
import { dryRunAll } from './dry-run.ts';
import { fundContinued, fundEvm } from './faucet.ts';
import { readContract } from './machine.ts';
import { type EvmParts, makeEvmParts } from './parts.ts';
import { decodeSigned } from './plan.ts';
import { codeAt } from './state.ts';
import { settle, settled, type Upstream } from './upstream.ts';
import { simulateBundler } from './user-operations/bundler.ts';

/** Simulates one EVM chain. Addresses are lower-case hex internally. */
export function simulateEvm(world: World, caip2: string, upstream?: Upstream): Simulated<EvmChain> {
  const parts = makeEvmParts(world, caip2, upstream);
  const simulated = simulate(parts);
  return upstream === undefined ? simulated : continued(parts, simulated);
}

/** Wraps the methods of a chain that forks a real one: they wait until missing state has been fetched. */
function continued(
  parts: EvmParts,
  { chain, ledger, fund, ...controls }: Simulated<EvmChain>,
): Simulated<EvmChain> {
  const { bundler, kind, caip2, chainId, ...methods } = chain;
  return {
    ...settled(controls),
    evm: parts,
    head: controls.head,
    close: () => parts.state.upstream?.close(),
    chain: {
      ...{ kind, caip2, chainId, ...settled(methods) },
      ...(bundler === undefined ? {} : { bundler: settled(bundler) }),
    },
    ...{ ledger, fund },
    fundContinued: (deposit) => settle(() => fundContinued(parts, deposit)),
  };
}

function simulate(parts: EvmParts): Simulated<EvmChain> {
  const { caip2 } = parts;
  const { state, blocks } = parts;
  const { ledger } = state;
  const { broadcast, statusOf } = transactions(parts);
  const bundler = tempoChains.has(caip2) ? undefined : simulateBundler(parts);
  // Loaded on demand, because most sandboxes serve only the wallet API.
  const answerRpc = loadOnce(async () =>
    (await import('./rpc/methods.ts')).rpcOf({ parts, broadcast, bundler }),
  );
  return {
    chain: {
      kind: 'evm',
      caip2,
      chainId: state.chainId,
      ...(bundler === undefined ? {} : { bundler }),
      ...queries(parts),
      ...{ broadcast, statusOf },
      ...transferLists(parts),
    },
    ledger,
    decimalsOf: (tokenAddress) =>
      tokenAddress === null ? 18 : decimalsOf(parts, tokenAddress.toLowerCase()),
    symbolOf: (token) => symbolOf(parts, token),
    fund: (deposit) => fundEvm(parts, deposit),
    catchUp: () => blocks.catchUp(),
    head: () => blocks.head(),
    evm: parts,
    prepare: parts.prepare,
    mine: (count) => blocks.mine(count),
    rpc: async (call, caller) => (await answerRpc())(call, caller),
  };
}

/** Returns the chain's queries of the latest state. */
function queries(
  parts: EvmParts,
): Pick<EvmChain, 'balances' | 'nonce' | 'fees' | 'latestSeconds' | 'simulate' | 'read' | 'code'> {
  const { caip2, state, blocks, atHead } = parts;
  const { baseFee, priorityFee } = termsOf(caip2);
  return {
    async balances(address, tokens) {
      await blocks.catchUp();
      const amounts: bigint[] = [];
      for (const token of tokens) amounts.push(await balanceOf(parts, address.toLowerCase(), token));
      return amounts;
    },
    nonce: (given) =>
      atHead(() => {
        const address = given.toLowerCase();
        return BigInt(nextNonce(state.accounts.nonce(address, ''), parts.pool.waiting(address, '')));
      }),
    fees: async () => ({ maxFeePerGas: 2n * baseFee + priorityFee, maxPriorityFeePerGas: priorityFee }),
    latestSeconds: () => atHead(() => parts.blocks.head().seconds),
    async simulate(calls) {
      await blocks.catchUp();
      return dryRunAll(await parts.interpreter(), state, { block: blocks.head(), calls });
    },
    async read({ to, data }) {
      await blocks.catchUp();
      const call = { block: blocks.head(), to: to.toLowerCase(), data };
      return (await readContract(await parts.interpreter(), state, call)) ?? new Uint8Array();
    },
    code: (address) => atHead(() => codeAt(state, address.toLowerCase())),
  };
}

/** Returns the decimals of a token, or undefined if there is no token at the address. */
async function decimalsOf(parts: EvmParts, token: string): Promise<number | undefined> {
  const known = tokenAt(parts.state, token)?.decimals;
  if (known !== undefined) return known;
  const returned = await readToken(parts, token, { name: 'decimals' });
  const decimals = returned?.length === 32 ? BigInt(bytesTo0xHex(returned)) : undefined;
  return decimals !== undefined && decimals < 256n ? Number(decimals) : undefined;
}

async function balanceOf(parts: EvmParts, owner: string, tokenAddress: string | null): Promise<bigint> {
  const { state } = parts;
  const token = tokenAddress?.toLowerCase() ?? NATIVE;
  if (token === NATIVE || tokenAt(state, token) !== undefined) return state.ledger.balance(owner, token);
  const returned = await readToken(parts, token, { name: 'balanceOf', owner });
  return returned?.length === 32 ? BigInt(bytesTo0xHex(returned)) : 0n;
}

function readToken(
  parts: EvmParts,
  token: string,
  call: Parameters<typeof encodeTokenCall>[0],
): Promise<Uint8Array | undefined> {
  return readAt(parts, token, encodeTokenCall(call));
}

async function readAt(
  { state, blocks, interpreter }: EvmParts,
  token: string,
  data: Uint8Array,
): Promise<Uint8Array | undefined> {
  if (codeAt(state, token).length === 0) return undefined;
  return readContract(await interpreter(), state, { block: blocks.head(), to: token, data });
}

// symbol()
const SYMBOL_CALL = hexToBytes('95d89b41');
/** CHOICE: a longer symbol is cut off, because a smart contract can return any string. */
const MAX_SYMBOL_BYTES = 32;

/** Calls `symbol()` of a token. Returns undefined unless it returns an ABI-encoded string that is not empty. */
async function symbolOf(parts: EvmParts, token: string): Promise<string | undefined> {
  const returned = await readAt(parts, token, SYMBOL_CALL);
  if (returned === undefined || returned.length < 64) return undefined;
  const length = BigInt(bytesTo0xHex(returned.subarray(32, 64)));
  if (length === 0n || length > BigInt(returned.length - 64)) return undefined;
  return bytesToUtf8(returned.subarray(64, 64 + Math.min(Number(length), MAX_SYMBOL_BYTES)));
}

function transactions(parts: EvmParts): Pick<EvmChain, 'broadcast' | 'statusOf'> {
  const { world, state, pool, blocks, atHead } = parts;
  return {
    async broadcast(signedBytes) {
      const decoded = await decodeOrRefuse(() => decodeSigned(signedBytes));
      if ('isAccepted' in decoded) return decoded;
      assertNodeAvailable(decoded.plan.sentinel);
      const outcome = await atHead(() => acceptTransaction(parts, decoded));
      await blocks.catchUp();
      return outcome;
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

function lowerCase(query: TransferQuery): TransferQuery {
  const tokenAddresses = query.tokenAddresses.map((token) => token?.toLowerCase() ?? null);
  return { ...query, address: query.address.toLowerCase(), tokenAddresses };
}

function checksummed(address: string): string {
  return checksumAddress(address.slice(2));
}
