import type { BroadcastOutcome } from '../../../../ports/chains.ts';
import { type Refusal, refuse } from '../decode-or-refuse.ts';
import { NATIVE, rollBack } from '../ledger.ts';
import { FEE_PAYER_ADDRESS } from '../sponsors.ts';
import { fundSolana } from './faucet.ts';
import { canPay, feeOf, runSolana, type SolanaRun } from './machine.ts';
import type { SolanaParts } from './parts.ts';
import type { DecodedSolana, SolanaPlan } from './plan.ts';
import { rentExemption } from './state.ts';

/** Adds a transaction to the pool or refuses it, after a preflight simulation. */
export function acceptTransaction(
  parts: SolanaParts,
  { hash, isSigned, plan }: DecodedSolana,
): BroadcastOutcome {
  const { world, pool, blocks } = parts;
  if (pool.isKnown(hash)) return { isAccepted: true, hash };
  if (!isSigned) return refuse('invalid', 'Transaction signature verification failure');
  const run = preflight(parts, plan);
  if ('isAccepted' in run) return run;
  const times = { receivedMs: world.clock.now(), dueMs: blocks.dueMs() };
  const { feePayer: sender, signers } = plan;
  pool.add({ hash, sender, signers, lane: '', nonce: undefined, plan, ...times });
  return { isAccepted: true, hash };
}

/** Executes a transaction and rolls back. */
export function preflight(parts: SolanaParts, plan: SolanaPlan): SolanaRun | Refusal {
  const { state, isAlive } = parts;
  if (plan.usesTables) return refuse('invalid', 'address lookup table not found');
  if (!isAlive(plan.blockhash)) return refuse('stale', 'Blockhash not found');
  if (plan.feePayer === FEE_PAYER_ADDRESS) refill(parts, plan);
  if (!canPay(state, plan)) {
    return refuse('insufficient_funds', 'the fee payer cannot pay the fee and keep its rent exemption');
  }
  const run = rollBack(state.store, () => runSolana(state, plan, { isIncluded: false }));
  if (run.revert === undefined) return run;
  return refuse(run.revert.isShortfall ? 'insufficient_funds' : 'reverts', run.revert.message);
}

/** CHOICE: 10 SOL per refill. */
const REFILL = 10_000_000_000n;

/** Funds the sponsoring fee payer until it can pay this fee and those of all pending transactions. */
function refill(parts: SolanaParts, plan: SolanaPlan): void {
  const { state, pool } = parts;
  const pending = pool.due(Number.MAX_SAFE_INTEGER).map((entry) => entry.plan);
  const sponsored = [...pending.filter(({ feePayer }) => feePayer === FEE_PAYER_ADDRESS), plan];
  const required = sponsored.reduce((sum, each) => sum + feeOf(each), rentExemption(0));
  while (state.ledger.balance(FEE_PAYER_ADDRESS, NATIVE) < required) {
    fundSolana(parts, { address: FEE_PAYER_ADDRESS, tokenAddress: null, rawAmount: REFILL });
  }
}
