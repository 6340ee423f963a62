import type { SqlEntityManager } from '@mikro-orm/sql';
import { type Kysely, sql } from 'kysely';
import { WebhookDeliveryEntity } from '../../access/webhooks/webhook.entity.ts';
import { LONGEST_RETRY_MS } from '../../access/webhooks/webhook-retries.ts';
import { type Claimant, claimedUntil } from '../../base/processes/server-processes.ts';
import { prepareQuery } from '../../prepared-query.ts';
import type { Tables } from '../../tables.ts';
import {
  TransactionEntity,
  type TransactionRow,
  type TransactionStatus,
  transactionColumns,
} from './transaction.entity.ts';

// KYSELY: see `TransactionRow` in `transaction.entity.ts`.

/** A transaction that is due for a status check. */
export interface DueTransaction extends TransactionRow {
  /** The status of the transaction that must come first (`after_transaction_id`); null if there is none. */
  readonly earlierStatus: TransactionStatus | null;
}

/** How long a claim of a transaction lasts. */
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
 * Claims transactions that are due for a status check, most overdue first, by moving their next check. Until then, no
 * other process claims them. The claim of a dead process is released or expires.
 *
 * @param busy CAIP-2 ids of busy chains, whose transactions are not claimed.
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
  await em.nativeUpdate(
    TransactionEntity,
    { id: { $in: rows.map(({ id }) => id) } },
    { nextCheckAtMs: leasedUntilMs, claimedBy: owner },
  );
  return rows.map((row) => ({ ...row, next_check_at_ms: leasedUntilMs }));
}

/** Makes the transactions that a dead process had claimed or was about to broadcast due again. */
export async function releaseTransactionsOf(em: SqlEntityManager, dead: Claimant): Promise<void> {
  await em.nativeUpdate(
    TransactionEntity,
    { claimedBy: dead.owner, nextCheckAtMs: claimedUntil(dead) },
    { nextCheckAtMs: dead.nowMs },
  );
}

// KYSELY: the same statement serves tables of several layers.

const MINUTE_MS = 60_000;
/** The maximum difference between the clocks of two processes. */
const SKEW_MS = MINUTE_MS;

/**
 * The columns with due times or leases, each with the maximum time by which anything postpones it. Each column has an
 * index.
 *
 * INVARIANT: with a correct clock, no due time is further in the future than that.
 */
const dueTimes = [
  { table: 'transactions', column: 'next_check_at_ms', longestMs: MINUTE_MS },
  { table: 'wallet_action_steps', column: 'next_check_at_ms', longestMs: MINUTE_MS },
  { table: 'wallet_automation_executions', column: 'next_run_at_ms', longestMs: MINUTE_MS },
  { table: 'cards', column: 'next_check_at_ms', longestMs: MINUTE_MS },
  { table: 'fiat_customers', column: 'next_check_at_ms', longestMs: 60 * MINUTE_MS },
  { table: 'fiat_deposit_accounts', column: 'next_check_at_ms', longestMs: MINUTE_MS },
  { table: 'fiat_deposits', column: 'next_check_at_ms', longestMs: MINUTE_MS },
  { table: 'chain_positions', column: 'leased_until_ms', longestMs: MINUTE_MS },
  { table: 'webhook_endpoints', column: 'leased_until_ms', longestMs: MINUTE_MS },
] as const;

/**
 * Makes work due whose due time is too far in the future. This happens when the clock was ahead and was then set back:
 * the work would wait for the whole difference. A result that a process stores under the old time is dropped, and the
 * work is done again.
 *
 * @returns the number of changed rows.
 */
export async function pullBackChecks(em: SqlEntityManager, nowMs: number): Promise<number> {
  const database = em.getKysely<Tables>();
  if (!(await isAnyTooLate(database, nowMs))) return 0;
  let rows = 0n;
  for (const { table, column, longestMs } of dueTimes) {
    const { numUpdatedRows } = await database
      .updateTable(table)
      .set({ [column]: nowMs } as never)
      .where(column as never, '>', (nowMs + longestMs + SKEW_MS) as never)
      .executeTakeFirstOrThrow();
    rows += numUpdatedRows;
  }
  return Number(rows) + (await pullBackRetries(em, nowMs));
}

/**
 * Returns whether any due time is too far in the future. One statement checks all tables, because almost none ever is.
 */
async function isAnyTooLate(database: Kysely<Tables>, nowMs: number): Promise<boolean> {
  const latest = [
    ...dueTimes.map(({ longestMs, ...due }) => ({ ...due, latestMs: nowMs + longestMs + SKEW_MS })),
    { table: 'webhook_endpoints', column: 'next_due_at_ms', latestMs: nowMs + LONGEST_RETRY_MS + SKEW_MS },
  ];
  const queries = latest.map(
    ({ table, column, latestMs }) =>
      sql`exists (select 1 from ${sql.table(table)} where ${sql.ref(column)} > ${latestMs})`,
  );
  const { rows } = await sql<{
    found: boolean | number;
  }>`select ${sql.join(queries, sql` or `)} as found`.execute(database);
  return Boolean(rows[0]?.found);
}

/** Makes deliveries due whose next retry is later than any retry can be. */
async function pullBackRetries(em: SqlEntityManager, nowMs: number): Promise<number> {
  const database = em.getKysely<Tables>();
  const latestMs = nowMs + LONGEST_RETRY_MS + SKEW_MS;
  const endpoints = await database
    .updateTable('webhook_endpoints')
    .set({ next_due_at_ms: nowMs })
    .where('next_due_at_ms', '>', latestMs)
    .returning('id')
    .execute();
  for (const { id } of endpoints) {
    await em.nativeUpdate(
      WebhookDeliveryEntity,
      { endpointId: id, nextAttemptAtMs: { $gt: latestMs } },
      { nextAttemptAtMs: nowMs },
    );
  }
  return endpoints.length;
}
