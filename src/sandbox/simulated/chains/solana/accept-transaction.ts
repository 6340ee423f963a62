import { classifyFailure } from '../../../../adapters/chain-rpc/solana-status.ts';
import type { BroadcastOutcome } from '../../../../ports/chains.ts';
import { type Refusal, refuse } from '../decode-or-refuse.ts';
import { NATIVE, rollBack } from '../ledger.ts';
import { FEE_PAYER_ADDRESS } from '../sponsors.ts';
import { rentExemption } from './accounts.ts';
import type { TransactionError } from './failures.ts';
import { fundSolana } from './faucet.ts';
import { runSolana, type SolanaRun } from './machine.ts';
import type { SolanaParts } from './parts.ts';
import { type DecodedSolana, isSigned, type SolanaPlan } from './plan.ts';
import type { Executor } from './runtime.ts';

/** Runs the preflight of a transaction. If it succeeds, adds the transaction to the pool; if not, rejects it. */
export function acceptTransaction(
  parts: SolanaParts,
  decoded: DecodedSolana,
  executor: Executor,
): BroadcastOutcome {
  const { pool } = parts;
  const { hash, wire } = decoded;
  if (pool.isKnown(hash)) return { isAccepted: true, hash };
  if (!isSigned(decoded)) return refuse('invalid', 'Transaction signature verification failure');
  const run = preflight(parts, decoded, executor);
  const error = errorOf(run);
  if (error !== null) return refusalOf(error, run, wire);
  addToPool(parts, decoded);
  return { isAccepted: true, hash };
}

/** Adds a transaction to the pool without a preflight. */
export function addToPool(
  { world, pool, blocks }: SolanaParts,
  { hash, keys, transaction, plan }: DecodedSolana,
) {
  const times = { receivedMs: world.clock.now(), dueMs: blocks.dueMs() };
  const signers = keys.slice(0, transaction.requiredSignatures);
  pool.add({ hash, sender: plan.feePayer, signers, lane: '', nonce: undefined, plan, ...times });
}

/**
 * Executes a transaction and rolls back its changes.
 *
 * @param inspect called before the rollback.
 */
export function preflight(
  parts: SolanaParts,
  decoded: DecodedSolana,
  executor: Executor,
  {
    isBlockhashChecked = true,
    inspect = () => undefined,
  }: { readonly isBlockhashChecked?: boolean; readonly inspect?: () => void } = {},
): SolanaRun {
  const { state, blocks, isAlive } = parts;
  const { plan } = decoded;
  if (isBlockhashChecked && !isAlive(plan.blockhash)) return { kind: 'refused', error: 'BlockhashNotFound' };
  if (plan.feePayer === FEE_PAYER_ADDRESS) refill(parts, plan);
  return rollBack(state.store, () => {
    // Execute as in the next block, so that a program that was deployed in the latest block can be called.
    const { number, seconds } = blocks.head();
    const run = runSolana(state, decoded, { executor, block: { number: number + 1, seconds } });
    inspect();
    return run;
  });
}

export function errorOf(run: SolanaRun): TransactionError | null {
  return run.kind === 'refused' ? run.error : run.outcome.error;
}

/** Returns the refusal with which a node would report the error. */
export function refusalOf(error: TransactionError, run: SolanaRun, wire: Uint8Array): Refusal {
  const { reason, message } = classifyFailure(error, run.kind === 'ran' ? run.outcome.logs : undefined, wire);
  return refuse(reason, message);
}

/** CHOICE: refills are multiples of 10 SOL. The sponsor does not pay a fee above that amount. */
const REFILL = 10_000_000_000n;

/** Funds the sponsor so that it can pay this fee and the fees of all pending transactions. */
function refill(parts: SolanaParts, plan: SolanaPlan): void {
  if (plan.fee > REFILL) return;
  const { state, pool } = parts;
  const pending = pool.due(Number.MAX_SAFE_INTEGER).map((entry) => entry.plan);
  const sponsored = [...pending, plan].filter(
    ({ feePayer, fee }) => feePayer === FEE_PAYER_ADDRESS && fee <= REFILL,
  );
  const required = sponsored.reduce((sum, { fee }) => sum + fee, rentExemption(0));
  const missing = required - state.ledger.balance(FEE_PAYER_ADDRESS, NATIVE);
  if (missing <= 0n) return;
  const rawAmount = ((missing + REFILL - 1n) / REFILL) * REFILL;
  fundSolana(parts, { address: FEE_PAYER_ADDRESS, tokenAddress: null, rawAmount });
}
