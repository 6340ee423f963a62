import { hash } from 'node:crypto';
import type { SqlEntityManager } from '@mikro-orm/sql';
import { sql } from 'kysely';
import type { WebhookAttempt } from '../../../generated/schemas.ts';
import type { UnitContext } from '../../../ports/operation-context.ts';
import { noteChange } from '../../base/events/events.ts';
import { prepareQuery } from '../../prepared-query.ts';
import type { Tables } from '../../tables.ts';
import { type DueDelivery, holdBack } from './due-deliveries.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** The delays after the first, second and later failures. The first attempt is immediate. */
const delaysMs = [5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 10 * HOUR];

/** The longest delay after a failure, with its jitter. */
export const LONGEST_RETRY_MS = 11 * HOUR;

/** A delivery is given up after this many failures. */
export const MAX_ATTEMPTS = 1 + delaysMs.length;

/** The length of a "day" of a failing endpoint. Days count from the first failure since the last success. */
const FAILING_DAY_MS = 24 * HOUR;

/** An endpoint whose attempts have all failed for this many days is disabled. */
const MAX_FAILING_DAYS = 5;

/**
 * Returns the delay after a failed attempt, including jitter; undefined after the last attempt.
 *
 * CHOICE: the delay is up to a tenth longer than scheduled, never shorter, so that deliveries that failed together are
 * not retried together. The jitter is derived from the delivery, not random. In a seeded server, background work must
 * not change the ids that requests draw.
 *
 * @param failures the number of failed attempts since the start of the schedule, including this one.
 */
function retryDelayMs(failures: number, deliveryId: string): number | undefined {
  const delayMs = delaysMs[failures - 1];
  if (delayMs === undefined) return undefined;
  // The first 32 bits of the digest as a fraction of 1.
  const share = Number.parseInt(hash('sha256', `${deliveryId}.${failures}`).slice(0, 8), 16) / 2 ** 32;
  return delayMs + Math.floor((delayMs / 10) * share);
}

export interface FinishedAttempt {
  readonly delivery: DueDelivery;
  readonly attempt: WebhookAttempt;
  readonly isDelivered: boolean;
  /** When the attempt ended, Unix ms. */
  readonly nowMs: number;
}

/**
 * CHOICE: the number of attempts that a delivery stores is enough for two complete schedules and a few more attempts.
 */
const KEPT_ATTEMPTS = 20;

interface Outcome {
  readonly id: string;
  readonly status: string;
  readonly orderKey: string | null;
  /** The number of failures when the attempt started. */
  readonly failuresBefore: number;
  readonly failures: number;
  readonly attemptCount: number;
  readonly attempts: string;
  readonly nextAttemptAtMs: number | null;
  readonly finishedAtMs: number | null;
}

/**
 * Records an attempt without its outcome. Runs when a replay restarted the schedule during the attempt, so that the new
 * schedule stays.
 */
const addAttempt = prepareQuery<Outcome>((database, outcome) =>
  database
    .updateTable('webhook_deliveries')
    .set({ attempt_count: outcome.attemptCount, attempts: outcome.attempts })
    .where('id', '=', outcome.id)
    .where('next_attempt_at_ms', 'is not', null),
);

/**
 * Updates the deliveries that have not changed since their attempt began, and returns their ids. Another process may
 * have finished a delivery if this process was stalled for longer than its lease.
 *
 * KYSELY: the parameter is one JSON object with the outcomes by delivery id, so that the text of the statement is the
 * same for any number of them.
 */
const updateDeliveries = prepareQuery<{ outcomes: string }, { id: string }>((database, { outcomes }) => ({
  compile: () =>
    sql<{ id: string }>`
      update webhook_deliveries as delivery set
        status = outcome.value ->> 'status',
        order_key = outcome.value ->> 'orderKey',
        failures = cast(outcome.value ->> 'failures' as integer),
        attempt_count = cast(outcome.value ->> 'attemptCount' as integer),
        attempts = outcome.value ->> 'attempts',
        next_attempt_at_ms = cast(outcome.value ->> 'nextAttemptAtMs' as bigint),
        finished_at_ms = cast(outcome.value ->> 'finishedAtMs' as bigint)
      from json_each(${outcomes}) as outcome
      where delivery.id = outcome.key
        and delivery.next_attempt_at_ms is not null
        and delivery.failures = cast(outcome.value ->> 'failuresBefore' as integer)
      returning id
    `.compile(database),
}));

/**
 * Records the outcomes of attempts: delivered, to be retried, or given up after the last retry. Disables an endpoint
 * whose attempts have all failed for five days.
 *
 * @returns the ids of the endpoints that were disabled.
 */
export async function recordAttempts(
  { em, notes }: UnitContext,
  finished: readonly FinishedAttempt[],
): Promise<string[]> {
  const endpoints = await lockEndpoints(em, [
    ...new Set(finished.map(({ delivery }) => delivery.endpointId)),
  ]);
  // An endpoint may have been deleted with its deliveries during the attempt.
  const known = finished.filter(({ delivery }) => endpoints.has(delivery.endpointId));
  const outcomes = known.map(outcomeOf);
  const byId = Object.fromEntries(outcomes.map((outcome) => [outcome.id, outcome]));
  const { rows } = await updateDeliveries(em, { outcomes: JSON.stringify(byId) });
  const updated = new Set(rows.map(({ id }) => id));
  for (const [index, { delivery }] of known.entries()) {
    const outcome = outcomes[index]!;
    const { nextAttemptAtMs } = outcome;
    if (!updated.has(delivery.id)) await addAttempt(em, outcome);
    else if (nextAttemptAtMs !== null) await holdBack(em, { ...delivery, nextAttemptAtMs });
  }
  const disabled: string[] = [];
  for (const [id, health] of endpoints) {
    const own = finished.filter(({ delivery }) => delivery.endpointId === id);
    if (await recordHealth({ em, notes }, id, health, own)) disabled.push(id);
  }
  return disabled;
}

function outcomeOf({ delivery, attempt, isDelivered, nowMs }: FinishedAttempt): Outcome {
  const failures = isDelivered ? delivery.failures : delivery.failures + 1;
  const delayMs = isDelivered ? undefined : retryDelayMs(failures, delivery.id);
  const isOver = delayMs === undefined;
  return {
    id: delivery.id,
    status: isDelivered ? 'delivered' : isOver ? 'failed' : 'pending',
    orderKey: isOver ? null : delivery.orderKey,
    failuresBefore: delivery.failures,
    failures,
    attemptCount: delivery.attemptCount + 1,
    attempts: JSON.stringify(
      [...(JSON.parse(delivery.attempts) as WebhookAttempt[]), attempt].slice(-KEPT_ATTEMPTS),
    ),
    nextAttemptAtMs: isOver ? null : nowMs + delayMs,
    finishedAtMs: isOver ? nowMs : null,
  };
}

/** The failures of an endpoint since its last success. */
interface Health {
  /** The time of the first failure; null if there was none. */
  readonly sinceMs: number | null;
  /** The number of days with failures since then, where days are periods of 24 hours from `sinceMs`. */
  readonly dayCount: number;
  /** The number of the last day with a failure, counting from 0. */
  readonly lastDay: number;
}

const healthy: Health = { sinceMs: null, dayCount: 0, lastDay: 0 };

/**
 * Reads the health of endpoints and locks them.
 *
 * INVARIANT: endpoints are locked before their deliveries and in the order of their ids, to avoid deadlocks.
 */
async function lockEndpoints(em: SqlEntityManager, ids: readonly string[]): Promise<Map<string, Health>> {
  const rows = await em
    .getKysely<Tables>()
    .selectFrom('webhook_endpoints')
    .select(['id', 'failing_since_ms', 'failing_day_count', 'last_failing_day'])
    .where('id', 'in', ids)
    .orderBy('id')
    .forUpdate()
    .execute();
  return new Map(
    rows.map((row) => [
      row.id,
      {
        sinceMs: row.failing_since_ms,
        dayCount: row.failing_day_count,
        lastDay: row.last_failing_day,
      },
    ]),
  );
}

function healthAfter(health: Health, { isDelivered, nowMs }: FinishedAttempt): Health {
  if (isDelivered) return healthy;
  if (health.sinceMs === null) return { sinceMs: nowMs, dayCount: 1, lastDay: 0 };
  const day = Math.floor((nowMs - health.sinceMs) / FAILING_DAY_MS);
  return day > health.lastDay ? { ...health, dayCount: health.dayCount + 1, lastDay: day } : health;
}

/**
 * Returns whether an endpoint has failed for so long that it is disabled.
 *
 * CHOICE: an endpoint is disabled after five days of failures if three things hold: the last failure is at least five
 * days after the first, attempts failed on five different days, and none succeeded. Days without attempts do not count,
 * so two failures far apart do not disable an endpoint.
 */
function isTooLong({ dayCount, lastDay }: Health): boolean {
  return lastDay >= MAX_FAILING_DAYS && dayCount >= MAX_FAILING_DAYS;
}

/**
 * Stores the health of an endpoint after attempts, and disables an endpoint that has failed for too long. Returns
 * whether it was disabled.
 */
async function recordHealth(
  { em, notes }: UnitContext,
  id: string,
  known: Health,
  finished: readonly FinishedAttempt[],
): Promise<boolean> {
  const health = finished.reduce(healthAfter, known);
  const isSame =
    health.sinceMs === known.sinceMs &&
    health.dayCount === known.dayCount &&
    health.lastDay === known.lastDay;
  if (isSame) return false;
  const mustDisable = isTooLong(health);
  const changed = await em
    .getKysely<Tables>()
    .updateTable('webhook_endpoints')
    .set({
      failing_since_ms: health.sinceMs,
      failing_day_count: health.dayCount,
      last_failing_day: health.lastDay,
      ...(mustDisable && {
        status: 'disabled',
        disabled_reason: 'failing',
        updated_at_ms: finished.at(-1)!.nowMs,
      }),
    })
    .where('id', '=', id)
    .where('status', '=', 'enabled')
    .returning('app_id')
    .executeTakeFirst();
  if (!mustDisable || changed === undefined) return false;
  noteChange(notes, { appId: changed.app_id, what: 'webhook_endpoint.disabled', id });
  return true;
}
