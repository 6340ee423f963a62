import type { SqlEntityManager } from '@mikro-orm/sql';
import type { Insertable } from 'kysely';
import type { DelayDelivery } from '../../../ports/fault-injection.ts';
import { lockName } from '../../../storage/locks.ts';
import type { Tables } from '../../tables.ts';
import { isSubscribedTo } from './check-webhook-endpoint.ts';
import { deliveryIdOf } from './delivery-id.ts';

// HOT: delivery runs for every event and endpoint (bench `webhooks`).

type NewDelivery = Insertable<Tables['webhook_deliveries']>;

/** Rows per statement: SQLite accepts 32,766 values, PostgreSQL 65,535. */
const ROWS_AT_ONCE = 500;

/**
 * Creates the deliveries of recorded events for the subscribed endpoints, in the order in which the events were
 * recorded.
 *
 * Each event has its own mark, instead of one position for all: on PostgreSQL a transaction with a lower sequence may
 * commit later, so its events would be behind the position.
 *
 * @param limit the maximum of events.
 * @param delay the delays of deliveries; none by default.
 * @returns the number of events and the endpoints with new deliveries.
 */
export async function fanOutEvents(
  em: SqlEntityManager,
  nowMs: number,
  limit: number,
  delay?: DelayDelivery,
): Promise<{ eventCount: number; endpointIds: string[] }> {
  const database = em.getKysely<Tables>();
  const pending = database
    .selectFrom('outbox_events')
    .select(['sequence', 'id', 'app_id', 'type', 'resource_id'])
    .$if(delay !== undefined, (query) => query.select('payload'))
    .where('fanned_out_at_ms', 'is', null)
    .orderBy('sequence')
    .limit(limit);
  if ((await pending.limit(1).execute()).length === 0) return { eventCount: 0, endpointIds: [] };
  // One process at a time. Otherwise later events of a resource could overtake earlier ones.
  await lockName(em, 'webhook fan-out', 'webhook_fan_out');
  const events = await pending.execute();
  if (events.length === 0) return { eventCount: 0, endpointIds: [] };
  const endpoints = await endpointsOf(em, [...new Set(events.map((event) => event.app_id))]);
  const deliveries = events.flatMap((event) =>
    endpoints
      .filter(
        (endpoint) =>
          endpoint.app_id === event.app_id &&
          endpoint.after_sequence < event.sequence &&
          isSubscribedTo(event.type, endpoint.eventTypes),
      )
      .map(
        (endpoint): NewDelivery => ({
          id: deliveryIdOf(event.id, endpoint.id),
          endpoint_id: endpoint.id,
          event_sequence: event.sequence,
          event_id: event.id,
          event_type: event.type,
          status: 'pending',
          order_key: event.resource_id,
          failures: 0,
          attempt_count: 0,
          attempts: '[]',
          next_attempt_at_ms: nowMs,
          created_at_ms: nowMs,
        }),
      ),
  );
  const endpointIds = [...new Set(deliveries.map((delivery) => delivery.endpoint_id))];
  if (delay !== undefined) delayDeliveries(deliveries, events, delay);
  await waitBehindRetries(em, deliveries, endpointIds);
  for (let begin = 0; begin < deliveries.length; begin += ROWS_AT_ONCE) {
    await database
      .insertInto('webhook_deliveries')
      .values(deliveries.slice(begin, begin + ROWS_AT_ONCE))
      .onConflict((conflict) => conflict.doNothing())
      .execute();
  }
  await markDue(em, endpointIds, nowMs);
  await database
    .updateTable('outbox_events')
    .set({ fanned_out_at_ms: nowMs })
    .where(
      'sequence',
      'in',
      events.map((event) => event.sequence),
    )
    .execute();
  return { eventCount: events.length, endpointIds };
}

function delayDeliveries(
  deliveries: readonly NewDelivery[],
  events: readonly { id: string; type: string; app_id: string; payload?: string }[],
  delay: DelayDelivery,
): void {
  const byId = new Map(events.map((event) => [event.id, event]));
  for (const delivery of deliveries) {
    const { type, app_id: appId, payload = '' } = byId.get(delivery.event_id)!;
    const { delayMs = 0, keepsOrder = true } = delay({ type, appId, payload }) ?? {};
    if (delayMs > 0) delivery.next_attempt_at_ms = delivery.next_attempt_at_ms! + delayMs;
    if (!keepsOrder) delivery.order_key = null;
  }
}

/** Locked until the transaction ends, so that no endpoint is deleted meanwhile. */
async function endpointsOf(em: SqlEntityManager, appIds: readonly string[]) {
  const rows = await em
    .getKysely<Tables>()
    .selectFrom('webhook_endpoints')
    .select(['id', 'app_id', 'event_types', 'after_sequence'])
    .where('app_id', 'in', appIds)
    .where('status', '=', 'enabled')
    .orderBy('id')
    .forUpdate()
    .execute();
  return rows.map((row) => ({ ...row, eventTypes: JSON.parse(row.event_types) as string[] }));
}

/**
 * Makes new deliveries due together with the retry that they must wait for, so that they are not read before. Only an
 * optimization: the order is enforced when they are read.
 */
async function waitBehindRetries(
  em: SqlEntityManager,
  deliveries: readonly NewDelivery[],
  endpointIds: readonly string[],
): Promise<void> {
  const keys = [...new Set(deliveries.flatMap((delivery) => delivery.order_key ?? []))];
  if (keys.length === 0) return;
  const waiting = await em
    .getKysely<Tables>()
    .selectFrom('webhook_deliveries')
    .select(['endpoint_id', 'order_key'])
    .select(({ fn }) => fn.max<number>('next_attempt_at_ms').as('due_at_ms'))
    .where('endpoint_id', 'in', endpointIds)
    .where('order_key', 'in', keys)
    .groupBy(['endpoint_id', 'order_key'])
    .execute();
  const dueAtMs = new Map(waiting.map((row) => [`${row.endpoint_id} ${row.order_key}`, row.due_at_ms]));
  for (const delivery of deliveries) {
    const behindMs = dueAtMs.get(`${delivery.endpoint_id} ${delivery.order_key}`);
    if (behindMs !== undefined && behindMs > delivery.next_attempt_at_ms!) {
      delivery.next_attempt_at_ms = behindMs;
    }
  }
}

/** Marks endpoints as having due deliveries, in the transaction that created those. */
export async function markDue(
  em: SqlEntityManager,
  endpointIds: readonly string[],
  dueAtMs: number,
): Promise<void> {
  if (endpointIds.length === 0) return;
  await em
    .getKysely<Tables>()
    .updateTable('webhook_endpoints')
    .set({ next_due_at_ms: dueAtMs })
    .where('id', 'in', endpointIds)
    .where(({ or, eb }) => or([eb('next_due_at_ms', 'is', null), eb('next_due_at_ms', '>', dueAtMs)]))
    .execute();
}
