import type { SqlEntityManager } from '@mikro-orm/sql';
import type { Tables } from '../../tables.ts';
import { type TransactionRow, transactionColumns } from './transaction-row.ts';

// HOT: jobs of several processes claim transactions and move them from status to status. No bench case covers it.

/** How long a claimed transaction belongs to the process that claimed it. */
const LEASE_MS = 60_000;

/**
 * Claims transactions that are due for a status check, the most overdue first, by moving their next check: no other
 * process claims them meanwhile, and the claim of a process that dies expires.
 */
export async function claimDueTransactions(
  em: SqlEntityManager,
  nowMs: number,
  limit: number,
): Promise<readonly TransactionRow[]> {
  const database = em.getKysely<Tables>();
  const rows = await database
    .selectFrom('transactions')
    .select(transactionColumns)
    .where('next_check_at_ms', '<=', nowMs)
    .orderBy('next_check_at_ms')
    .orderBy('id')
    .limit(limit)
    .$castTo<TransactionRow>()
    .forUpdate()
    .skipLocked()
    .execute();
  if (rows.length === 0) return [];
  const leasedUntilMs = nowMs + LEASE_MS;
  await database
    .updateTable('transactions')
    .set({ next_check_at_ms: leasedUntilMs })
    .where(
      'id',
      'in',
      rows.map(({ id }) => id),
    )
    .execute();
  return rows.map((row) => ({ ...row, next_check_at_ms: leasedUntilMs }));
}
