import { hash } from 'node:crypto';
import type { SqlEntityManager } from '@mikro-orm/sql';
import type { Insertable, Selectable } from 'kysely';
import type { DelayDelivery } from '../../../ports/requests.ts';
import { lockName } from '../../../storage/locks.ts';
import type { Claimant } from '../../base/processes/server-processes.ts';
import type { Tables } from '../../tables.ts';
import { WebhookEndpointEntity } from './webhook.entity.ts';
import { isSubscribedTo } from './webhook-endpoint.ts';

/**
 * Derives the id of an event's delivery to an endpoint. The id is not random, for two reasons:
 * - Assigning an event to an endpoint twice has no effect.
 * - In a seeded server, background work does not change the ids that requests draw.
 *
 * @returns 24 characters, `d` and the first 23 base-36 digits of SHA-256(event id || "." || endpoint id).
 */
export function deliveryIdOf(eventId: string, endpointId: string): string {
  const digest = BigInt(`0x${hash('sha256', `${eventId}.${endpointId}`)}`);
  return `d${digest.toString(36).padStart(50, '0').slice(0, 23)}`;
}

// HOT: delivery runs for every event and endpoint (bench `webhooks`).

type NewDelivery = Insertable<Tables['webhook_deliveries']>;

/** The number of rows per statement: SQLite accepts 32,766 parameters, PostgreSQL 65,535. */
const ROWS_AT_ONCE = 500;

/**
 * Creates the deliveries of recorded events for the subscribed endpoints, in the order in which the events were
 * recorded.
 *
 * Each event has its own mark (`fannedOutAtMs`) instead of one position for all events. On PostgreSQL, a transaction
 * with a lower sequence can commit later, and a common position would have passed its events.
 *
 * @param limit the maximum number of events.
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
  // Only one process at a time fans out. With two, later events of a resource could overtake earlier ones.
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

/** Selects the subscribed endpoints and locks them until the transaction ends, so that none is deleted in between. */
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
 * Makes new deliveries due at the same time as the retry that they must wait for, so that they are not read earlier.
 * This is only an optimization: `readDueDeliveries` enforces the order anyway.
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

/** Marks endpoints as having due deliveries, in the transaction that created the deliveries. */
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

/** A row of `webhook_endpoints` with the column names of the database. */
export type EndpointRow = Selectable<Tables['webhook_endpoints']>;

const columns = [
  'id',
  'app_id',
  'url',
  'description',
  'event_types',
  'status',
  'disabled_reason',
  'after_sequence',
  'failing_since_ms',
  'failing_day_count',
  'last_failing_day',
  'next_due_at_ms',
  'lease_owner',
  'leased_until_ms',
  'created_at_ms',
  'updated_at_ms',
] as const satisfies readonly (keyof EndpointRow)[];

/**
 * How long a claim of an endpoint lasts unless it is extended. If the process crashes, other processes release its
 * claims as soon as they count it as dead.
 *
 * CHOICE: processes claim endpoints, not deliveries. So processes need not coordinate the order per resource or the
 * limit of requests to an endpoint, and a delivery costs one write. The queue consists of our own tables, because
 * graphile-worker and pg-boss need PostgreSQL, and neither keeps the order per resource while other resources continue.
 */
export const LEASE_MS = 30_000;

/**
 * Claims endpoints with due deliveries and no active claim, the longest wait first. Also claims endpoints that an
 * earlier process with the same owner id had claimed.
 *
 * @param known endpoints that this process already serves.
 * @returns the ids of the claimed endpoints.
 */
export async function claimEndpoints(
  em: SqlEntityManager,
  claimant: Claimant,
  known: readonly string[],
  limit: number,
): Promise<string[]> {
  if (!(await isAnyEndpointWaiting(em, claimant, known))) return [];
  const claimed = await em
    .getKysely<Tables>()
    .updateTable('webhook_endpoints')
    .set({ lease_owner: claimant.owner, leased_until_ms: claimant.nowMs + LEASE_MS })
    .where('id', 'in', selectWaiting(em, claimant, known).limit(limit).forUpdate().skipLocked())
    .returning('id')
    .execute();
  return claimed.map(({ id }) => id);
}

/** Returns whether there is an endpoint that `claimEndpoints` would claim. */
export async function isAnyEndpointWaiting(
  em: SqlEntityManager,
  claimant: Claimant,
  known: readonly string[],
): Promise<boolean> {
  return (await selectWaiting(em, claimant, known).limit(1).execute()).length > 0;
}

function selectWaiting(em: SqlEntityManager, { owner, nowMs }: Claimant, known: readonly string[]) {
  const waiting = em
    .getKysely<Tables>()
    .selectFrom('webhook_endpoints')
    .select('id')
    .where('next_due_at_ms', '<=', nowMs)
    .where('status', '=', 'enabled')
    .where(({ or, eb }) =>
      or([
        eb('leased_until_ms', 'is', null),
        eb('leased_until_ms', '<=', nowMs),
        // This process does not serve the endpoint, so the claim is that of an earlier process with the same owner id.
        eb('lease_owner', '=', owner),
      ]),
    )
    .orderBy('next_due_at_ms');
  return known.length === 0 ? waiting : waiting.where('id', 'not in', known);
}

/**
 * Reads the current state of an endpoint that this process has claimed. Returns undefined if the claim is lost or the
 * endpoint is deleted or disabled; its worker must then stop. Does not wait for locks.
 */
export async function readClaimedEndpoint(
  em: SqlEntityManager,
  { owner }: Claimant,
  id: string,
): Promise<EndpointRow | undefined> {
  return em
    .getKysely<Tables>()
    .selectFrom('webhook_endpoints')
    .select(columns)
    .where('id', '=', id)
    .where('status', '=', 'enabled')
    .where('lease_owner', '=', owner)
    .executeTakeFirst();
}

/** Extends the claim to `LEASE_MS` from now, and returns what `readClaimedEndpoint` returns. */
export async function holdEndpoint(
  em: SqlEntityManager,
  { owner, nowMs }: Claimant,
  id: string,
): Promise<EndpointRow | undefined> {
  return em
    .getKysely<Tables>()
    .updateTable('webhook_endpoints')
    .set({ leased_until_ms: nowMs + LEASE_MS })
    .where('id', '=', id)
    .where('status', '=', 'enabled')
    .where('lease_owner', '=', owner)
    .returning(columns)
    .executeTakeFirst();
}

/**
 * Releases an endpoint, unless it already has due deliveries again. With `mustRelease`, it is released nevertheless,
 * and queues behind endpoints that have waited longer.
 *
 * @returns false if this process keeps the endpoint.
 */
export async function releaseEndpoint(
  em: SqlEntityManager,
  { owner, nowMs }: Claimant,
  id: string,
  mustRelease: boolean,
): Promise<boolean> {
  const database = em.getKysely<Tables>();
  // Lock the endpoint before reading its deliveries. A transaction that adds a delivery also marks the endpoint, so the
  // delivery is either visible here or its transaction waits.
  const endpoint = await database
    .selectFrom('webhook_endpoints')
    .select(['status', 'lease_owner'])
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirst();
  if (endpoint?.lease_owner !== owner) return true;
  const next = await database
    .selectFrom('webhook_deliveries')
    .select('next_attempt_at_ms')
    .where('endpoint_id', '=', id)
    .where('next_attempt_at_ms', 'is not', null)
    .orderBy('next_attempt_at_ms')
    .limit(1)
    .executeTakeFirst();
  const dueAtMs = next?.next_attempt_at_ms ?? null;
  if (!mustRelease && endpoint.status === 'enabled' && dueAtMs !== null && dueAtMs <= nowMs) return false;
  await database
    .updateTable('webhook_endpoints')
    .set({
      next_due_at_ms: dueAtMs === null ? null : Math.max(dueAtMs, nowMs),
      lease_owner: null,
      leased_until_ms: null,
    })
    .where('id', '=', id)
    .execute();
  return true;
}

/** Releases the endpoints that a dead process had claimed. */
export async function releaseEndpointsOf(em: SqlEntityManager, { owner }: Claimant): Promise<void> {
  await em.nativeUpdate(
    WebhookEndpointEntity,
    { leaseOwner: owner },
    { leaseOwner: null, leasedUntilMs: null },
  );
}
