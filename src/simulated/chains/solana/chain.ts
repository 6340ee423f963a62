import { ed25519Sign } from '../../../crypto/ed25519.ts';
import type { SolanaChain } from '../../../ports/chains.ts';
import { assertNodeAnswers, decodeOrRefuse } from '../decode-or-refuse.ts';
import { NATIVE } from '../ledger.ts';
import { FEE_PAYER_ADDRESS, FEE_PAYER_SEED } from '../sponsors.ts';
import { type Simulated, transfersAfter, transfersOf, type World } from '../world.ts';
import { fundSolana } from './faucet.ts';
import { BLOCKHASH_LIFE, makeSolanaParts, type SolanaParts } from './parts.ts';
import { decodeSolana } from './plan.ts';
import { holding, rentExemption } from './state.ts';
import { preflight, take } from './take.ts';

/** One simulated Solana chain. Addresses are base58 throughout. */
export function simulateSolana(world: World, caip2: string): Simulated<SolanaChain> {
  const parts = makeSolanaParts(world, caip2);
  const { state, blocks } = parts;
  return {
    chain: {
      kind: 'solana',
      caip2,
      feePayer: {
        address: FEE_PAYER_ADDRESS,
        sign: async (messageBytes) => ed25519Sign(messageBytes, FEE_PAYER_SEED),
      },
      ...asked(parts),
      ...sent(parts),
    },
    ledger: state.ledger,
    decimalsOf: (tokenAddress) => (tokenAddress === null ? 9 : state.mint(tokenAddress)?.decimals),
    give: (deposit) => fundSolana(parts, deposit),
    head: () => blocks.head(),
    mine: (count) => state.store.atomically(() => blocks.mine(count)),
  };
}

function asked(
  parts: SolanaParts,
): Omit<SolanaChain, 'kind' | 'caip2' | 'feePayer' | keyof ReturnType<typeof sent>> {
  const { world, caip2, state, blocks, blockhashAt, now } = parts;
  return {
    balances: (address, tokens) =>
      now(() =>
        tokens.map((token) =>
          token === null ? state.ledger.balance(address, NATIVE) : holding(state, address, token),
        ),
      ),
    latestBlockhash: () =>
      now(() => {
        const { number } = blocks.head();
        return { blockhash: blockhashAt(number), lastValidBlockHeight: BigInt(number + BLOCKHASH_LIFE) };
      }),
    tokenAccounts: (owner, mint) =>
      now(() =>
        state.tokenAccountsOf(owner, mint).map(({ address, amount }) => ({ address, rawAmount: amount })),
      ),
    mint: (address) =>
      now(() => {
        const mint = state.mint(address);
        return mint && { decimals: mint.decimals, tokenProgram: mint.program };
      }),
    rentExemption: async (sizeBytes) => rentExemption(sizeBytes),
    transfersOf: (query) => now(() => transfersOf(world, caip2, { query, text: asItIs })),
    transfersAfter: (position, limit) =>
      now(() => transfersAfter(world, caip2, { position, limit, text: asItIs })),
  };
}

/** What has to do with transactions. */
function sent(parts: SolanaParts): Pick<SolanaChain, 'broadcast' | 'statusOf' | 'simulate'> {
  const { pool, blocks, isAlive, now } = parts;
  return {
    async broadcast(signedBytes) {
      const decoded = await decodeOrRefuse(() => decodeSolana(signedBytes));
      if ('isAccepted' in decoded) return decoded;
      assertNodeAnswers(decoded.plan.sentinel);
      return now(() => take(parts, decoded));
    },
    statusOf: (hash, signedBytes) =>
      now(() => {
        const status = pool.status(hash, blocks.isFinal);
        if (status !== undefined && status.kind !== 'unknown') return status;
        return { kind: 'unknown', isExpired: !isAlive(decodeSolana(signedBytes).plan.blockhash) };
      }),
    async simulate(transactionBytes) {
      const decoded = await decodeOrRefuse(() => decodeSolana(transactionBytes));
      const run = 'isAccepted' in decoded ? decoded : await now(() => preflight(parts, decoded.plan));
      if ('isAccepted' in run) return { succeeds: false, reason: run.reason, message: run.message };
      return { succeeds: true, units: run.units };
    },
  };
}

function asItIs(address: string): string {
  return address;
}
