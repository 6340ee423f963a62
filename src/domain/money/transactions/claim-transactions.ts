import type { SqlEntityManager } from '@mikro-orm/sql';
import type { Tables } from '../../tables.ts';
import { type TransactionRow, transactionColumns } from './transaction-row.ts';

/** How long a claimed transaction is left to the process that claimed it. */
const LEASE_MS = 60_000;

/**
 * Takes transactions whose chains are due to be asked, the longest due first, and puts their next time off: no other
 * process takes them meanwhile, and one that dies gives them back.
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
