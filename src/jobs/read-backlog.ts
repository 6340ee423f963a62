import type { SqlEntityManager } from '@mikro-orm/sql';
import { sql } from 'kysely';
import type { Tables } from '../domain/tables.ts';

/** The background work that is due but not done. */
export interface Backlog {
  /** How long the oldest due work of each kind has been due, in seconds. 0 if there is none. */
  readonly lagSeconds: Readonly<Record<string, number>>;
  /** The number of unfinished deliveries to enabled endpoints, counted up to `MAX_COUNTED`. */
  readonly deliveries: number;
}

const MAX_COUNTED = 100_000;

/**
 * For each kind, the table and the column with the due time of a row. Each column has a partial index, so each query
 * is one index look-up.
 */
const due = {
  transactions: sql`select min(next_check_at_ms) from transactions where next_check_at_ms is not null`,
  // Later transactions wait for the block of the transaction before them.
  wallet_action_steps: sql`select min(steps.next_check_at_ms) from wallet_action_steps steps
    join wallet_action_steps deposits on deposits.action_id = steps.action_id and deposits.position = steps.position - 1
    join transactions on transactions.id = deposits.transaction_id
    where steps.next_check_at_ms is not null and steps.external_status = 'waiting'
      and transactions.status in ('confirmed', 'finalized')`,
  automations: sql`select min(next_run_at_ms) from wallet_automation_executions where next_run_at_ms is not null`,
  fiat_customers: sql`select min(next_check_at_ms) from fiat_customers`,
  fiat_deposits: sql`select min(next_check_at_ms) from fiat_deposits
    where next_check_at_ms is not null and transaction_hash is not null`,
  fiat_deposit_accounts: sql`select min(next_check_at_ms) from fiat_deposit_accounts
    where next_check_at_ms is not null`,
  cards: sql`select min(next_check_at_ms) from cards where next_check_at_ms is not null`,
  events: sql`select min(created_at_ms) from outbox_events where fanned_out_at_ms is null`,
  webhook_endpoints: sql`select min(next_due_at_ms) from webhook_endpoints
    where next_due_at_ms is not null and status = 'enabled'`,
  intents: sql`select min(expires_at_ms) from intents where status = 'pending'`,
};

/** Reads the backlog in one statement. */
export async function readBacklog(em: SqlEntityManager, nowMs: number): Promise<Backlog> {
  const columns = Object.entries(due).map(([kind, query]) => sql`(${query}) as ${sql.ref(kind)}`);
  const deliveries = sql`(select count(*) from (
    select 1 from webhook_deliveries
    join webhook_endpoints on webhook_endpoints.id = endpoint_id and webhook_endpoints.status = 'enabled'
    where next_attempt_at_ms is not null limit ${sql.lit(MAX_COUNTED)}
  ) counted) as deliveries`;
  const { rows } = await sql<
    Record<string, number | null>
  >`select ${sql.join([...columns, deliveries])}`.execute(em.getKysely<Tables>());
  const [row = {}] = rows;
  const lagOf = (kind: string): number => Math.max(0, nowMs - (row[kind] ?? nowMs)) / 1000;
  return {
    lagSeconds: Object.fromEntries(Object.keys(due).map((kind) => [kind, lagOf(kind)])),
    deliveries: row.deliveries ?? 0,
  };
}
