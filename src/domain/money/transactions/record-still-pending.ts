import { recordEvent } from '../../base/events/record-event.ts';
import type { Tables } from '../../tables.ts';
import { type AdvanceContext, eventPayload, type Finding } from './advance-transaction.ts';
import { SLOW_AFTER_MS } from './transaction-checks.ts';
import type { TransactionRow } from './transaction-row.ts';

// HOT: jobs of several processes claim transactions and move them from status to status. No bench case covers it.

const TEMPO_TYPE = 118;

/**
 * Records once that an EVM transaction has been waiting for inclusion for a long time. The event cannot describe a
 * Tempo batch.
 */
export async function recordStillPending(
  context: AdvanceContext,
  row: TransactionRow,
  { status }: Pick<Finding, 'status'>,
): Promise<void> {
  const isSlow = status === 'broadcasted' && context.nowMs - row.created_at_ms >= SLOW_AFTER_MS;
  if (!isSlow || row.is_slow_told === 1 || row.transaction_request === null) return;
  const request = JSON.parse(row.transaction_request) as { readonly type?: number };
  if (request.type === TEMPO_TYPE) return;
  await recordEvent(context, {
    appId: row.app_id,
    type: 'transaction.still_pending',
    payload: {
      ...eventPayload(row),
      transaction_request: request,
    },
  });
  await context.em
    .getKysely<Tables>()
    .updateTable('transactions')
    .set({ is_slow_told: 1 })
    .where('id', '=', row.id)
    .execute();
}
