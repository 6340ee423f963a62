import type { OperationContext } from '../../../operation-context.ts';
import type { AnyChain } from '../../../ports/chains.ts';
import { advanceTransaction, type Finding } from '../transactions/advance-transaction.ts';
import { carrierOf, EARLIER_NEVER_CAME, failed, findStale } from '../transactions/follow-transaction.ts';
import type { TransactionRow } from '../transactions/transaction-row.ts';
import { neverHasEffect } from '../transactions/transaction-state.ts';
import { chainRefusal } from './call-chain.ts';

type BroadcastContext = Pick<OperationContext, 'chains' | 'inUnit' | 'ids' | 'nowMs' | 'log' | 'prices'>;

/**
 * Broadcasts a recorded transaction after the database transaction that signed it has committed.
 *
 * CHOICE: when the chain cannot be reached, or its response cannot be stored, the request still succeeds and the
 * transaction stays `pending`: its bytes are stored and the job sends them until the chain answers. With an error,
 * callers would send a second transaction, and both could be included.
 *
 * @throws ApiError insufficient_funds, transaction_execution_failure, transaction_broadcast_failure when the chain
 * refuses it: the transaction becomes `failed` and its nonce is free again, or `replaced` if the nonce was already
 * used.
 *
 * Result: whether the chain has accepted it, as far as is known.
 */
export async function broadcastTransaction(
  context: BroadcastContext,
  chain: AnyChain,
  row: TransactionRow,
): Promise<boolean> {
  let refused: Error | undefined;
  let isAccepted = false;
  try {
    const outcome = await carrierOf(chain, row).broadcast(row.signed_bytes);
    let finding: Finding = { status: 'broadcasted', isSettled: false };
    if (!outcome.isAccepted) {
      finding =
        outcome.reason === 'stale'
          ? ((await findStale(chain, row)) ?? failed(row, outcome.message))
          : failed(row, outcome.message);
      // `replaced` too: the chain refuses a nonce that another transaction has already used.
      if (neverHasEffect.has(finding.status)) refused = chainRefusal(outcome.reason, outcome.message);
    }
    await context.inUnit((em) => advanceTransaction({ ...context, em }, row, finding));
    isAccepted = outcome.isAccepted;
  } catch (err) {
    context.log.warn({ err, transaction: row.id }, 'a transaction could not be broadcast yet; the job will');
  }
  if (refused !== undefined) throw refused;
  return isAccepted;
}

/**
 * Broadcasts transactions that build on each other. Each waits until the chain has the one before: when the chain
 * cannot be reached, the job sends the rest; when it refuses one, the rest can no longer take effect and ends too.
 *
 * @throws as `broadcastTransaction`.
 */
export async function broadcastInOrder(
  context: BroadcastContext,
  transactions: readonly { readonly chain: AnyChain; readonly row: TransactionRow }[],
): Promise<void> {
  for (const [index, { chain, row }] of transactions.entries()) {
    try {
      if (!(await broadcastTransaction(context, chain, row))) return;
    } catch (refusal) {
      await endUnsent(
        context,
        transactions.slice(index + 1).map((later) => later.row),
      );
      throw refusal;
    }
  }
}

/** Ends transactions that were never sent. If this is not stored, the job does it. */
async function endUnsent(context: BroadcastContext, rows: readonly TransactionRow[]): Promise<void> {
  try {
    await context.inUnit(async (em) => {
      for (const row of rows)
        await advanceTransaction({ ...context, em }, row, failed(row, EARLIER_NEVER_CAME));
    });
  } catch (err) {
    context.log.warn({ err }, 'transactions that were not sent could not be ended yet; the job will');
  }
}
