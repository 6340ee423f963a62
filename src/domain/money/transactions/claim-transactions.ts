import type { SqlEntityManager } from '@mikro-orm/sql';
import type { Kysely } from 'kysely';
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

interface Wanted {
  readonly nowMs: number;
  readonly limit: number;
}

const dueOf = (database: Kysely<Tables>, { nowMs, limit }: Wanted) =>
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
    .skipLocked();

const selectDue = prepareQuery<Wanted, DueTransaction>(dueOf);

/**
 * Claims transactions that are due for a status check, the most overdue first, by moving their next check: no other
 * process claims them meanwhile, and the claim of a process that dies is released, or expires.
 *
 * @param busy chains whose transactions are left out.
 */
export async function claimDueTransactions(
  em: SqlEntityManager,
  { owner, nowMs }: Claimant,
  { busy = [], limit }: { readonly busy?: readonly string[]; readonly limit: number },
): Promise<readonly DueTransaction[]> {
  const wanted = { nowMs, limit };
  const rows =
    busy.length === 0
      ? (await selectDue(em, wanted)).rows
      : await dueOf(em.getKysely<Tables>(), wanted).where('transactions.caip2', 'not in', busy).execute();
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
