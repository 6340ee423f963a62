import type { OperationContext } from '../../../operation-context.ts';
import type { AnyChain } from '../../../ports/chains.ts';
import { advanceTransaction, type Finding } from '../transactions/advance-transaction.ts';
import { carrierOf, failed, findStale } from '../transactions/follow-transaction.ts';
import type { TransactionRow } from '../transactions/transaction-row.ts';
import type { TransactionStatus } from '../transactions/transaction-state.ts';
import { chainRefusal } from './call-chain.ts';

/** Includes `replaced`: the chain refuses a nonce that another transaction has already used. */
const neverComes: ReadonlySet<TransactionStatus> = new Set(['failed', 'provider_error', 'replaced']);

/**
 * Broadcasts a recorded transaction after the database transaction that signed it has committed.
 *
 * CHOICE: when the chain cannot be reached, or its answer cannot be stored, the request still succeeds and the
 * transaction stays `pending`: its bytes are stored and the job sends them until the chain answers. With an error,
 * callers would send a second transaction, and both could be included.
 *
 * @throws ApiError insufficient_funds, transaction_execution_failure, transaction_broadcast_failure when the chain
 * refuses it: the transaction becomes `failed` and its nonce is free again, or `replaced` if the nonce was already
 * used.
 */
export async function broadcastTransaction(
  context: Pick<OperationContext, 'chains' | 'inUnit' | 'ids' | 'nowMs' | 'log' | 'prices'>,
  chain: AnyChain,
  row: TransactionRow,
): Promise<void> {
  let refused: Error | undefined;
  try {
    const outcome = await carrierOf(chain, row).broadcast(row.signed_bytes);
    let finding: Finding = { status: 'broadcasted', isSettled: false };
    if (!outcome.isAccepted) {
      finding =
        outcome.reason === 'stale'
          ? await findStale(chain, row, outcome.message)
          : failed(row, outcome.message);
      if (neverComes.has(finding.status)) refused = chainRefusal(outcome.reason, outcome.message);
    }
    await context.inUnit((em) => advanceTransaction({ ...context, em }, row, finding));
  } catch (err) {
    context.log.warn({ err, transaction: row.id }, 'a transaction could not be broadcast yet; the job will');
  }
  if (refused !== undefined) throw refused;
}
