import type { InferEntity } from '@mikro-orm/core';
import type { SqlEntityManager } from '@mikro-orm/sql';
import { type Selectable, sql } from 'kysely';
import { invalidQuery, notFound } from '../../../errors.ts';
import type { WebhookAttempt, WebhookDelivery } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { pageOf } from '../../../storage/find-page.ts';
import { type ExpiringTable, graceOf } from '../../../storage/schema/partitions.ts';
import { announceDelivery, recordEventForOne } from '../../base/events/events.ts';
import { OutboxEventEntity } from '../../base/events/outbox-event.entity.ts';
import type { Tables } from '../../tables.ts';
import { deliveryIdOf, markDue } from './fan-out-events.ts';
import { WebhookDeliveryEntity } from './webhook.entity.ts';
import {
  findWebhookEndpoint,
  findWebhookEndpointForUpdate,
  requireEnabled,
  TEST_TYPE,
  type WebhookContext,
} from './webhook-endpoint.ts';

// HOT: delivery runs for every event and endpoint (bench `webhooks`).

/** A row of `webhook_deliveries` with the column names of the database. */
type DeliveryRow = Selectable<Tables['webhook_deliveries']>;

const columns = [
  'id',
  'endpoint_id',
  'event_sequence',
  'event_id',
  'event_type',
  'status',
  'order_key',
  'failures',
  'attempt_count',
  'attempts',
  'next_attempt_at_ms',
  'created_at_ms',
  'finished_at_ms',
] as const satisfies readonly (keyof DeliveryRow)[];

const MAX_PAGE = 100;
const TEST_PAYLOAD = 'Hello from the test of a webhook endpoint.';

/**
 * Lists one page of the deliveries to an endpoint, newest event first.
 *
 * @param cursor the `nextCursor` of the previous page.
 * @param limit 1 to 100, by default 100.
 * @throws ApiError not_found; invalid_data for a cursor that is not a delivery to the endpoint.
 */
export async function listWebhookDeliveries(
  context: WebhookContext,
  endpointId: string,
  {
    cursor,
    limit = MAX_PAGE,
    status,
  }: {
    cursor?: string | undefined;
    limit?: number | undefined;
    status?: WebhookDelivery['status'] | undefined;
  },
): Promise<{ deliveries: DeliveryRow[]; nextCursor: string | null }> {
  const endpoint = await findWebhookEndpoint(context, endpointId);
  let query = context.em
    .getKysely<Tables>()
    .selectFrom('webhook_deliveries')
    .select(columns)
    .where('endpoint_id', '=', endpoint.id)
    .orderBy('event_sequence', 'desc')
    .limit(limit + 1);
  // Use a literal instead of a parameter, because the indexes of failed and pending deliveries are limited to a status.
  if (status !== undefined) query = query.where('status', '=', sql.lit(status));
  if (cursor !== undefined) {
    const last = await getDelivery(context.em, endpoint.id, cursor);
    if (last === undefined) throw invalidQuery('cursor', 'expected the `next_cursor` of a previous page');
    query = query.where('event_sequence', '<', last.event_sequence);
  }
  const { page, nextCursor } = pageOf(await query.execute(), limit);
  return { deliveries: page, nextCursor };
}

/**
 * Sends an event to an endpoint again, with the same id.
 *
 * CHOICE: the replay of a finished delivery ignores the order of its resource: it does not wait for other deliveries,
 * and no delivery waits for it.
 *
 * @throws ApiError not_found; invalid_state for a disabled endpoint.
 */
export async function replayWebhookDelivery(
  context: OperationContext,
  endpointId: string,
  deliveryId: string,
): Promise<DeliveryRow> {
  const endpoint = await findWebhookEndpointForUpdate(context, endpointId);
  const delivery = await getDelivery(context.em, endpoint.id, deliveryId);
  if (delivery === undefined) throw notFound('Webhook delivery');
  requireEnabled(endpoint);
  const changes = { status: 'pending', failures: 0, next_attempt_at_ms: context.nowMs, finished_at_ms: null };
  const update = context.em.getKysely<Tables>().updateTable('webhook_deliveries');
  await update.set(changes).where('id', '=', delivery.id).execute();
  if (delivery.order_key !== null) {
    // Deliveries queued behind this one become due at the same time.
    await update
      .set({ next_attempt_at_ms: context.nowMs })
      .where('endpoint_id', '=', endpoint.id)
      .where('order_key', '=', delivery.order_key)
      .where('next_attempt_at_ms', '>', context.nowMs)
      .execute();
  }
  await markDue(context.em, [endpoint.id], context.nowMs);
  announceDelivery(context.notes);
  return { ...delivery, ...changes };
}

/**
 * Sends an event of the type `service.test` to one endpoint.
 *
 * @throws ApiError not_found; invalid_state for a disabled endpoint.
 */
export async function testWebhookEndpoint(
  context: OperationContext,
  endpointId: string,
  payload = TEST_PAYLOAD,
): Promise<DeliveryRow> {
  const endpoint = await findWebhookEndpointForUpdate(context, endpointId);
  requireEnabled(endpoint);
  const event = await recordEventForOne(context, {
    appId: context.app.id,
    type: TEST_TYPE,
    payload: { payload },
  });
  const delivery: DeliveryRow = {
    id: deliveryIdOf(event.id, endpoint.id),
    endpoint_id: endpoint.id,
    event_sequence: event.sequence,
    event_id: event.id,
    event_type: TEST_TYPE,
    status: 'pending',
    order_key: null,
    failures: 0,
    attempt_count: 0,
    attempts: '[]',
    next_attempt_at_ms: context.nowMs,
    created_at_ms: context.nowMs,
    finished_at_ms: null,
  };
  await context.em.getKysely<Tables>().insertInto('webhook_deliveries').values(delivery).execute();
  await markDue(context.em, [endpoint.id], context.nowMs);
  return delivery;
}

/** Converts a delivery to wire form. */
export function webhookDeliveryView(row: DeliveryRow): WebhookDelivery {
  return {
    id: row.id,
    endpoint_id: row.endpoint_id,
    event_id: row.event_id,
    event_type: row.event_type,
    status: row.status as WebhookDelivery['status'],
    attempt_count: row.attempt_count,
    attempts: JSON.parse(row.attempts) as WebhookAttempt[],
    next_attempt_at: row.next_attempt_at_ms,
    created_at: row.created_at_ms,
  };
}

/** A delivery's status and number of attempts, without its payload. */
export type DeliveryProgress = Pick<
  InferEntity<typeof WebhookDeliveryEntity>,
  'id' | 'endpointId' | 'status' | 'attemptCount'
>;

/** Returns the deliveries of events to all endpoints, by the sequence of the event. */
export async function deliveriesOfEvents(
  em: SqlEntityManager,
  sequences: readonly number[],
): Promise<ReadonlyMap<number, readonly DeliveryProgress[]>> {
  const rows = await em.find(
    WebhookDeliveryEntity,
    { eventSequence: { $in: sequences } },
    {
      fields: ['id', 'endpointId', 'eventSequence', 'status', 'attemptCount'],
      orderBy: { eventSequence: 'asc', endpointId: 'asc' },
      disableIdentityMap: true,
    },
  );
  return Map.groupBy(rows, ({ eventSequence }) => eventSequence);
}

async function getDelivery(
  em: SqlEntityManager,
  endpointId: string,
  id: string,
): Promise<DeliveryRow | undefined> {
  if (!/^[a-z0-9]{1,64}$/.test(id)) return undefined;
  return em
    .getKysely<Tables>()
    .selectFrom('webhook_deliveries')
    .select(columns)
    .where('id', '=', id)
    .where('endpoint_id', '=', endpointId)
    .executeTakeFirst();
}

/** The number of recorded events of a type, and of their deliveries that endpoints acknowledged. */
interface EventCount {
  readonly type: string;
  readonly recorded: number;
  readonly acknowledged: number;
}

/** Counts the events of all apps, sorted by type. */
export async function countEvents(em: SqlEntityManager): Promise<EventCount[]> {
  const recorded = await em.countBy(OutboxEventEntity, 'type');
  const acknowledged = await em.countBy(WebhookDeliveryEntity, 'eventType', {
    where: { status: 'delivered' },
  });
  return Object.keys(recorded)
    .sort()
    .map((type) => ({ type, recorded: recorded[type] ?? 0, acknowledged: acknowledged[type] ?? 0 }));
}

// HOT: one row for every event and endpoint (bench `webhooks`).

/** CHOICE: deliveries and events are kept for a month, which is long enough to investigate past failures. */
const RETENTION_MS = 30 * 24 * 60 * 60 * 1000;
const DROPPED_AT_ONCE = 5_000;

/** The retention of deliveries: each is kept while it is pending, and for a month after it has ended. */
export const expiringDeliveries: ExpiringTable = {
  ...{ table: 'webhook_deliveries', key: 'event_sequence', time: 'created_at_ms', keptMs: RETENTION_MS },
  isNeeded: ({ name }, beforeMs) => sql<boolean>`
    exists (select from ${sql.table(name)} where next_attempt_at_ms is not null)
    or exists (select from ${sql.table(name)} where finished_at_ms > ${beforeMs})
  `,
};

/**
 * The retention of events: each is kept until it is fanned out, for at least a month, and as long as it has deliveries.
 */
export const expiringEvents: ExpiringTable = {
  ...{ table: 'outbox_events', key: 'sequence', time: 'created_at_ms', keptMs: RETENTION_MS },
  isNeeded: ({ name, from, to }, beforeMs) => sql<boolean>`
    exists (select from ${sql.table(name)} where fanned_out_at_ms is null)
    or exists (select from ${sql.table(name)} where created_at_ms > ${beforeMs})
    or exists (select from webhook_deliveries where event_sequence >= ${from ?? 0} and event_sequence < ${to})
  `,
};

/**
 * Deletes deliveries that ended more than a month ago, then events of that age without deliveries. Returns the number
 * of deleted rows. On PostgreSQL, expired partitions are dropped elsewhere, so this function skips their rows.
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
