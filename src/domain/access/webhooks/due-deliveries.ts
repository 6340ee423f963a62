import assert from 'node:assert/strict';
import type { SqlEntityManager } from '@mikro-orm/sql';
import { signWebhook } from '../../../engine/crypto/webhook-signature.ts';
import type { Services } from '../../../ports/operation-context.ts';
import { OutboxEventEntity } from '../../base/events/outbox-event.entity.ts';
import type { Tables } from '../../tables.ts';
import { WebhookDeliveryEntity } from './webhook.entity.ts';
import type { FinishedAttempt } from './webhook-retries.ts';

// HOT: delivery runs for every event and endpoint (bench `webhooks`).

/** A delivery to attempt. */
export interface DueDelivery {
  readonly id: string;
  readonly endpointId: string;
  readonly eventSequence: number;
  readonly eventId: string;
  readonly eventType: string;
  readonly orderKey: string | null;
  readonly failures: number;
  readonly attemptCount: number;
  /** JSON array of the previous attempts, as stored. */
  readonly attempts: string;
  readonly nextAttemptAtMs: number;
  /** The event's body as JSON. */
  readonly payload: string;
}

/**
 * The due deliveries of one resource, in order; at least one. Each is attempted only after the previous one was
 * delivered or given up.
 */
export type Lane = readonly [DueDelivery, ...DueDelivery[]];

/** Deliveries that this process is attempting, which must not be read again. */
interface UnderWay {
  readonly deliveryIds: readonly string[];
  readonly orderKeys: readonly string[];
}

/**
 * Reads the due deliveries of an endpoint, the earliest first. Each resource whose first pending delivery is due forms
 * a lane. Each delivery without an order key forms its own lane.
 *
 * @param limit the maximum number of due deliveries, and of deliveries queued behind them.
 * @returns the lanes. `isAll` is true when nothing else is due except deliveries in progress.
 */
export async function readDueDeliveries(
  em: SqlEntityManager,
  endpointId: string,
  { nowMs, limit, underWay }: { nowMs: number; limit: number; underWay: UnderWay },
): Promise<{ lanes: Lane[]; isAll: boolean }> {
  const candidates = await selectCandidates(em, endpointId, { nowMs, limit, underWay });
  const unordered = candidates.filter((row) => row.order_key === null).map((row) => row.id);
  const keys = [...new Set(candidates.flatMap((row) => row.order_key ?? []))];
  const rows = [
    ...(unordered.length === 0
      ? []
      : await selectWhole(em, endpointId).where('d.id', 'in', unordered).execute()),
    ...(keys.length === 0
      ? []
      : await selectWhole(em, endpointId)
          .where('d.order_key', 'in', keys)
          .orderBy('d.order_key')
          .orderBy('d.event_sequence')
          .limit(2 * limit)
          .execute()),
  ];
  assert(rows.length > 0 || candidates.length === 0, 'deliveries have lost their events');
  const lanes: Lane[] = [];
  let heldUp = 0;
  for (const lane of lanesOf(rows.map(dueDelivery))) {
    if (lane[0].nextAttemptAtMs <= nowMs) lanes.push(lane);
    else heldUp += await holdBack(em, lane[0]);
  }
  // Sort the lanes by the time at which they became due, not by their keys.
  const place = new Map(candidates.map((row, index) => [row.order_key ?? row.id, index]));
  const placeOf = ([first]: Lane): number => place.get(first.orderKey ?? first.id) ?? 0;
  lanes.sort((a, b) => placeOf(a) - placeOf(b));
  return { lanes, isAll: candidates.length < limit && rows.length < 2 * limit && heldUp === 0 };
}

function selectCandidates(
  em: SqlEntityManager,
  endpointId: string,
  { nowMs, limit, underWay }: { nowMs: number; limit: number; underWay: UnderWay },
) {
  let query = em
    .getKysely<Tables>()
    .selectFrom('webhook_deliveries')
    .select(['id', 'order_key'])
    .where('endpoint_id', '=', endpointId)
    .where('next_attempt_at_ms', '<=', nowMs)
    .orderBy('next_attempt_at_ms')
    .orderBy('event_sequence')
    .limit(limit);
  if (underWay.deliveryIds.length > 0) query = query.where('id', 'not in', underWay.deliveryIds);
  if (underWay.orderKeys.length > 0) {
    query = query.where(({ or, eb }) =>
      or([eb('order_key', 'is', null), eb('order_key', 'not in', underWay.orderKeys)]),
    );
  }
  return query.execute();
}

function selectWhole(em: SqlEntityManager, endpointId: string) {
  return em
    .getKysely<Tables>()
    .selectFrom('webhook_deliveries as d')
    .innerJoin('outbox_events as e', 'e.sequence', 'd.event_sequence')
    .select(['d.id', 'd.endpoint_id', 'd.event_sequence', 'd.event_id', 'd.event_type'])
    .select(['d.order_key', 'd.failures'])
    .select(['d.attempt_count', 'd.attempts', 'd.next_attempt_at_ms', 'e.payload'])
    .where('d.endpoint_id', '=', endpointId)
    .where('d.next_attempt_at_ms', 'is not', null);
}

type WholeRow = Awaited<ReturnType<ReturnType<typeof selectWhole>['execute']>>[number];

function dueDelivery(row: WholeRow): DueDelivery {
  return {
    id: row.id,
    endpointId: row.endpoint_id,
    eventSequence: row.event_sequence,
    eventId: row.event_id,
    eventType: row.event_type,
    orderKey: row.order_key,
    failures: row.failures,
    attemptCount: row.attempt_count,
    attempts: row.attempts,
    nextAttemptAtMs: row.next_attempt_at_ms!,
    payload: row.payload,
  };
}

/**
 * Groups deliveries into lanes.
 *
 * @param deliveries grouped by resource, in order within each.
 */
function lanesOf(deliveries: readonly DueDelivery[]): Lane[] {
  const lanes = new Map<string, [DueDelivery, ...DueDelivery[]]>();
  for (const delivery of deliveries) {
    const key = delivery.orderKey ?? delivery.id;
    const lane = lanes.get(key);
    if (lane === undefined) lanes.set(key, [delivery]);
    else lane.push(delivery);
  }
  return [...lanes.values()];
}

/**
 * Postpones all deliveries that are queued behind a delivery until that delivery is due, so that they are not read too
 * early.
 *
 * @returns the number of postponed deliveries.
 */
export async function holdBack(
  em: SqlEntityManager,
  {
    endpointId,
    orderKey,
    eventSequence,
    nextAttemptAtMs,
  }: Omit<DueDelivery, 'id' | 'payload' | 'attempts' | 'attemptCount' | 'failures' | 'eventId' | 'eventType'>,
): Promise<number> {
  if (orderKey === null) return 0;
  const { numUpdatedRows } = await em
    .getKysely<Tables>()
    .updateTable('webhook_deliveries')
    .set({ next_attempt_at_ms: nextAttemptAtMs })
    .where('endpoint_id', '=', endpointId)
    .where('order_key', '=', orderKey)
    .where('event_sequence', '>', eventSequence)
    .where('next_attempt_at_ms', '<', nextAttemptAtMs)
    .executeTakeFirst();
  return Number(numUpdatedRows);
}

/** An attempt fails if there is no response within this time. */
export const ATTEMPT_TIMEOUT_MS = 15_000;

export interface SigningSecret {
  /** `whsec_` and the base64 of the secret's bytes. */
  readonly text: string;
  /** When the secret stops signing, Unix ms; null for the newest secret. */
  readonly expiresAtMs: number | null;
}

/** The data that all deliveries to an endpoint share. */
interface Destination {
  readonly appId: string;
  readonly url: string;
  readonly secrets: readonly SigningSecret[];
  /** Replaces the neutral names in a stored payload by those of this server's brand. */
  writePayload(payload: string): string;
}

/**
 * Sends an event to an endpoint, signed with every valid secret. Call it outside any transaction.
 *
 * CHOICE: the timestamp comes from the system clock, not from the clock of the server, which a sandbox can move or
 * freeze. Receivers refuse timestamps that are more than five minutes off.
 */
export async function attemptDelivery(
  { clock, webhooks }: Pick<Services, 'clock' | 'webhooks'>,
  delivery: DueDelivery,
  { appId, url, secrets, writePayload }: Destination,
): Promise<FinishedAttempt> {
  const startedMs = clock.now();
  const bodyText = writePayload(delivery.payload);
  const valid = secrets.filter(({ expiresAtMs }) => expiresAtMs === null || expiresAtMs > startedMs);
  const headers = signWebhook({
    id: delivery.eventId,
    timestampSeconds: Math.floor(webhooks.systemNow() / 1000),
    bodyText,
    secrets: valid.map(({ text }) => text),
  });
  const outcome = await webhooks.send({
    url,
    headers: { ...headers },
    bodyText,
    event: { type: delivery.eventType, appId },
    timeoutMs: ATTEMPT_TIMEOUT_MS,
  });
  const { status = null, failure = null, durationMs } = outcome;
  return {
    delivery,
    attempt: { attempted_at: startedMs, duration_ms: durationMs, response_status: status, error: failure },
    isDelivered: status !== null && status >= 200 && status < 300,
    nowMs: clock.now(),
  };
}

/** The numbers of events and deliveries that are still to be sent. */
export interface WaitingDeliveries {
  /** Events for which no delivery was created yet. */
  readonly events: number;
  readonly deliveries: number;
}

export async function countWaitingDeliveries(em: SqlEntityManager): Promise<WaitingDeliveries> {
  return {
    events: await em.count(OutboxEventEntity, { fannedOutAtMs: null }),
    deliveries: await em.count(WebhookDeliveryEntity, { nextAttemptAtMs: { $ne: null } }),
  };
}

/**
 * Gives up all waiting deliveries and all events that have no deliveries yet. Clients can replay the deliveries through
 * the API, but not the events that have no deliveries.
 */
export async function skipWaitingDeliveries(em: SqlEntityManager, nowMs: number): Promise<void> {
  await em.nativeUpdate(OutboxEventEntity, { fannedOutAtMs: null }, { fannedOutAtMs: nowMs });
  await em.nativeUpdate(
    WebhookDeliveryEntity,
    { nextAttemptAtMs: { $ne: null } },
    { status: 'failed', orderKey: null, nextAttemptAtMs: null, finishedAtMs: nowMs },
  );
}
