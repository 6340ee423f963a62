import { ed25519Sign } from '../../../../engine/crypto/ed25519.ts';
import { loadOnce } from '../../../../engine/load-once.ts';
import type { SolanaChain } from '../../../../ports/chains.ts';
import { assertNodeAvailable, decodeOrRefuse } from '../decode-or-refuse.ts';
import { NATIVE } from '../ledger.ts';
import { FEE_PAYER_ADDRESS, FEE_PAYER_SEED } from '../sponsors.ts';
import { type Simulated, transfersAfter, transfersOf, type World } from '../world.ts';
import { acceptTransaction, errorOf, preflight, refusalOf } from './accept-transaction.ts';
import { rentExemption } from './accounts.ts';
import { fundSolana } from './faucet.ts';
import { BLOCKHASH_LIFE, makeSolanaParts, type SolanaParts } from './parts.ts';
import { decodeSolana } from './plan.ts';
import { holding } from './state.ts';

/** Simulates one Solana chain. Addresses are base58. */
export function simulateSolana(world: World, caip2: string): Simulated<SolanaChain> {
  const parts = makeSolanaParts(world, caip2);
  const { state, blocks } = parts;
  // Loaded on demand, because most sandboxes serve only the wallet API.
  const answerRpc = loadOnce(async () => (await import('./rpc/methods.ts')).rpcOf(parts));
  return {
    chain: {
      kind: 'solana',
      caip2,
      feePayer: {
        address: FEE_PAYER_ADDRESS,
        sign: async (messageBytes) => ed25519Sign(messageBytes, FEE_PAYER_SEED),
      },
      ...queries(parts),
      ...transactions(parts),
    },
    ledger: state.ledger,
    solana: parts,
    decimalsOf: (tokenAddress) => (tokenAddress === null ? 9 : state.mint(tokenAddress)?.decimals),
    fund: (deposit) => fundSolana(parts, deposit),
    catchUp: () => blocks.catchUp(),
    head: () => blocks.head(),
    mine: (count) => blocks.mine(count),
    prepare: parts.prepare,
    rpc: async (call, caller) => (await answerRpc())(call, caller),
  };
}

function queries(
  parts: SolanaParts,
): Omit<SolanaChain, 'kind' | 'caip2' | 'feePayer' | keyof ReturnType<typeof transactions>> {
  const { world, caip2, state, blocks, blockhashAt, atHead } = parts;
  return {
    balances: (address, tokens) =>
      atHead(() =>
        tokens.map((token) =>
          token === null ? state.ledger.balance(address, NATIVE) : holding(state, address, token),
        ),
      ),
    latestBlockhash: () =>
      atHead(() => {
        const { number } = blocks.head();
        return { blockhash: blockhashAt(number), lastValidBlockHeight: BigInt(number + BLOCKHASH_LIFE) };
      }),
    tokenAccounts: (owner, mint) =>
      atHead(() =>
        state.tokenAccountsOf(owner, mint).map(({ address, amount }) => ({ address, rawAmount: amount })),
      ),
    mint: (address) =>
      atHead(() => {
        const mint = state.mint(address);
        return mint && { decimals: mint.decimals, tokenProgram: mint.program };
      }),
    rentExemption: async (sizeBytes) => rentExemption(sizeBytes),
    transfersOf: (query) => atHead(() => transfersOf(world, caip2, { query, text: identity })),
    transfersAfter: (reading) => atHead(() => transfersAfter(world, caip2, { reading, text: identity })),
  };
}

function transactions(parts: SolanaParts): Pick<SolanaChain, 'broadcast' | 'statusOf' | 'simulate'> {
  const { pool, blocks, isAlive, atHead } = parts;
  return {
    async broadcast(signedBytes) {
      const decoded = await decodeOrRefuse(() => decodeSolana(signedBytes));
      if ('isAccepted' in decoded) return decoded;
      assertNodeAvailable(decoded.plan.sentinel);
      const executor = await parts.executor();
      const outcome = await atHead(() => acceptTransaction(parts, decoded, executor));
      await blocks.catchUp();
      return outcome;
    },
    statusOf: (hash, signedBytes) =>
      atHead(() => {
        const status = pool.status(hash, blocks);
        if (status !== undefined && status.kind !== 'unknown') return status;
        return { kind: 'unknown', isExpired: !isAlive(decodeSolana(signedBytes).plan.blockhash) };
      }),
    async simulate(transactionBytes) {
      const decoded = await decodeOrRefuse(() => decodeSolana(transactionBytes));
      if ('isAccepted' in decoded) {
        return { succeeds: false, reason: decoded.reason, message: decoded.message };
      }
      const executor = await parts.executor();
      const run = await atHead(() => preflight(parts, decoded, executor));
      if (run.kind === 'ran' && run.outcome.error === null) {
        return { succeeds: true, units: run.outcome.units };
      }
      const { reason, message } = refusalOf(errorOf(run)!, run, transactionBytes);
      return { succeeds: false, reason, message };
    },
  };
}

function identity(address: string): string {
  return address;
}
