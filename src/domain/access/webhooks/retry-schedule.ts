import { hash } from 'node:crypto';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** The delays after the first, second, … failure. The first attempt is immediate. */
const delaysMs = [5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 10 * HOUR];

/** The longest delay after a failure, with its jitter. */
export const LONGEST_RETRY_MS = 11 * HOUR;

/** After this many failures a delivery is given up. */
export const MAX_ATTEMPTS = 1 + delaysMs.length;

/** An attempt without a response within this time has failed. */
export const ATTEMPT_TIMEOUT_MS = 15 * SECOND;

/** The length of a day of a failing endpoint, counted from its first failure since the last success. */
export const FAILING_DAY_MS = 24 * HOUR;

/** An endpoint that has only failed for this many days is disabled. */
export const MAX_FAILING_DAYS = 5;

/**
 * The delay after a failed attempt, including jitter; undefined after the last one.
 *
 * CHOICE: up to a tenth longer than scheduled, never shorter, so that deliveries that failed together are not retried
 * together. The jitter is derived from the delivery, not random, so that in a seeded server background work does not
 * change the ids that requests draw.
 *
 * @param failures failed attempts since the start of the schedule, including this one.
 */
export function retryDelayMs(failures: number, deliveryId: string): number | undefined {
  const delayMs = delaysMs[failures - 1];
  if (delayMs === undefined) return undefined;
  // 32 bits of the digest as a fraction of 1.
  const share = Number.parseInt(hash('sha256', `${deliveryId}.${failures}`).slice(0, 8), 16) / 2 ** 32;
  return delayMs + Math.floor((delayMs / 10) * share);
}
