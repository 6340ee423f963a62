import type { SqlEntityManager } from '@mikro-orm/sql';
import { LONGEST_RETRY_MS } from '../../access/webhooks/retry-schedule.ts';
import type { Tables } from '../../tables.ts';

// HOT: Kysely, not for measured speed: the same statement for tables of several layers.

const MINUTE_MS = 60_000;
/** The clocks of processes may differ by as much. */
const SKEW_MS = MINUTE_MS;

/**
 * The times at which work is due, with the longest time that anything puts it off, leases included. Each has an index.
 *
 * INVARIANT: nothing sets a time further away than this by a right clock.
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
 * Makes due what a clock that was ahead has put off until its own time: after it was set back, the work would wait for
 * as long as it was ahead. A result that a process stores under the old time is dropped, and the work is done again.
 *
 * @returns the number of rows.
 */
export async function pullBackChecks(em: SqlEntityManager, nowMs: number): Promise<number> {
  const database = em.getKysely<Tables>();
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

/** Deliveries of endpoints whose next retry is later than any retry is. */
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
    await database
      .updateTable('webhook_deliveries')
      .set({ next_attempt_at_ms: nowMs })
      .where('endpoint_id', '=', id)
      .where('next_attempt_at_ms', '>', latestMs)
      .execute();
  }
  return endpoints.length;
}
