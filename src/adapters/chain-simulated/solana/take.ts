import type { BroadcastOutcome } from '../../../services.ts';
import { type Refusal, refuse } from '../decode-or-refuse.ts';
import { undone } from '../undone.ts';
import { canPay, runSolana, type SolanaRun } from './machine.ts';
import type { SolanaParts } from './parts.ts';
import type { DecodedSolana, SolanaPlan } from './plan.ts';

/** Takes a transaction, or says why not: nodes run it first. */
export function take(parts: SolanaParts, { hash, isSigned, plan }: DecodedSolana): BroadcastOutcome {
  const { world, pool, blocks } = parts;
  if (pool.isKnown(hash)) return { isAccepted: true, hash };
  if (!isSigned) return refuse('invalid', 'Transaction signature verification failure');
  const run = preflight(parts, plan);
  if ('isAccepted' in run) return run;
  const times = { receivedMs: world.clock.now(), dueMs: blocks.dueMs() };
  pool.add({ hash, sender: plan.feePayer, lane: '', nonce: undefined, plan, ...times });
  blocks.head();
  return { isAccepted: true, hash };
}

/** Runs a transaction and undoes everything. */
export function preflight({ state, isAlive }: SolanaParts, plan: SolanaPlan): SolanaRun | Refusal {
  if (plan.usesTables) return refuse('invalid', 'address lookup table not found');
  if (!isAlive(plan.blockhash)) return refuse('stale', 'Blockhash not found');
  if (!canPay(state, plan)) {
    return refuse('insufficient_funds', 'the fee payer cannot pay the fee and keep its rent exemption');
  }
  const run = undone(state.store, () => runSolana(state, plan, { isIncluded: false }));
  if (run.revert === undefined) return run;
  return refuse(run.revert.isShortfall ? 'insufficient_funds' : 'reverts', run.revert.message);
}
