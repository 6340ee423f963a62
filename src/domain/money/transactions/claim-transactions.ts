import type { SqlEntityManager } from '@mikro-orm/sql';
import { type Claimant, claimedUntil } from '../../base/processes/claims.ts';
import { prepareQuery } from '../../prepared-query.ts';
import type { Tables } from '../../tables.ts';
import { TransactionEntity } from './transaction.entity.ts';
import { type TransactionRow, transactionColumns } from './transaction-row.ts';
import type { TransactionStatus } from './transaction-state.ts';

// HOT: jobs of several processes claim transactions and move them from status to status. No bench case covers it.

/** A transaction that is due for a status check. */
export interface DueTransaction extends TransactionRow {
  /** The state of the earlier transaction of its action; null without one. */
  readonly earlierStatus: TransactionStatus | null;
}

/** How long a claimed transaction belongs to the process that claimed it. */
const LEASE_MS = 60_000;

const selectDue = prepareQuery<{ nowMs: number; limit: number }, DueTransaction>(
  (database, { nowMs, limit }) =>
    database
      .selectFrom('transactions')
      .leftJoin('transactions as earlier', 'earlier.id', 'transactions.after_transaction_id')
      .select(transactionColumns.map((column) => `transactions.${column}` as const))
      .select('earlier.status as earlierStatus')
      .where('transactions.next_check_at_ms', '<=', nowMs)
      .orderBy('transactions.next_check_at_ms')
      .orderBy('transactions.id')
      .limit(limit)
      .$castTo<DueTransaction>()
      .forUpdate('transactions')
      .skipLocked(),
);

/**
 * Claims transactions that are due for a status check, the most overdue first, by moving their next check: no other
 * process claims them meanwhile, and the claim of a process that dies is released, or expires.
 */
export async function claimDueTransactions(
  em: SqlEntityManager,
  { owner, nowMs }: Claimant,
  limit: number,
): Promise<readonly DueTransaction[]> {
  const { rows } = await selectDue(em, { nowMs, limit });
  if (rows.length === 0) return [];
  const leasedUntilMs = nowMs + LEASE_MS;
  await em
    .getKysely<Tables>()
    .updateTable('transactions')
    .set({ next_check_at_ms: leasedUntilMs, claimed_by: owner })
    .where(
      'id',
      'in',
      rows.map(({ id }) => id),
    )
    .execute();
  return rows.map((row) => ({ ...row, next_check_at_ms: leasedUntilMs }));
}

/** Makes the transactions due that a process has claimed, or was about to broadcast, before it ended. */
export async function releaseTransactionsOf(em: SqlEntityManager, dead: Claimant): Promise<void> {
  await em.nativeUpdate(
    TransactionEntity,
    { claimedBy: dead.owner, nextCheckAtMs: claimedUntil(dead) },
    { nextCheckAtMs: dead.nowMs },
  );
}
