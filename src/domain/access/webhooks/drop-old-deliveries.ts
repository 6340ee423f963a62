import type { SqlEntityManager } from '@mikro-orm/sql';
import { sql } from 'kysely';
import { type ExpiringTable, graceOf } from '../../../storage/schema/partitions.ts';
import type { Tables } from '../../tables.ts';

// HOT: one row for every event and endpoint (bench `webhooks`).

/** CHOICE: long enough to investigate past failures. */
const RETENTION_MS = 30 * 24 * 60 * 60 * 1000;
const DROPPED_AT_ONCE = 5_000;

/** Deliveries are needed while they are pending, and for a month after they have ended. */
export const expiringDeliveries: ExpiringTable = {
  ...{ table: 'webhook_deliveries', key: 'event_sequence', time: 'created_at_ms', keptMs: RETENTION_MS },
  isNeeded: ({ name }, beforeMs) => sql<boolean>`
    exists (select from ${sql.table(name)} where next_attempt_at_ms is not null)
    or exists (select from ${sql.table(name)} where finished_at_ms > ${beforeMs})
  `,
};

/** Events are needed until they are fanned out, for a month, and while they have deliveries. */
export const expiringEvents: ExpiringTable = {
  ...{ table: 'outbox_events', key: 'sequence', time: 'created_at_ms', keptMs: RETENTION_MS },
  isNeeded: ({ name, from, to }, beforeMs) => sql<boolean>`
    exists (select from ${sql.table(name)} where fanned_out_at_ms is null)
    or exists (select from ${sql.table(name)} where created_at_ms > ${beforeMs})
    or exists (select from webhook_deliveries where event_sequence >= ${from ?? 0} and event_sequence < ${to})
  `,
};

/**
 * Deletes deliveries that ended more than a month ago, then events of that age without deliveries; returns how many.
 * On PostgreSQL it is only for rows whose partition has not expired as a whole.
 */
export async function dropOldDeliveries(em: SqlEntityManager, nowMs: number): Promise<number> {
  const database = em.getKysely<Tables>();
  const beforeMs = nowMs - RETENTION_MS - graceOf(em);
  const oldDeliveries = database
    .selectFrom('webhook_deliveries')
    .select('id')
    .where('finished_at_ms', '<=', beforeMs)
    .limit(DROPPED_AT_ONCE);
  const deliveries = await database
    .deleteFrom('webhook_deliveries')
    .where('id', 'in', oldDeliveries)
    .executeTakeFirst();
  const oldEvents = database
    .selectFrom('outbox_events as e')
    .select('e.sequence')
    .where('e.created_at_ms', '<=', beforeMs)
    .where('e.fanned_out_at_ms', 'is not', null)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('webhook_deliveries as d')
            .select('d.id')
            .whereRef('d.event_sequence', '=', 'e.sequence'),
        ),
      ),
    )
    .limit(DROPPED_AT_ONCE);
  const events = await database
    .deleteFrom('outbox_events')
    .where('sequence', 'in', oldEvents)
    .executeTakeFirst();
  return Number(deliveries.numDeletedRows) + Number(events.numDeletedRows);
}
