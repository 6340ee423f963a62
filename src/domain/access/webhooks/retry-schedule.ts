import { hash } from 'node:crypto';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** How long after the first, second, … failure the next attempt is made. The first attempt is made at once. */
const delaysMs = [5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 10 * HOUR];

/** After so many failures a delivery is given up. */
export const MAX_ATTEMPTS = 1 + delaysMs.length;

/** An attempt that was not answered by then has failed. */
export const ATTEMPT_TIMEOUT_MS = 15 * SECOND;

/** What counts as a day of an endpoint that fails, from its first failure since the last success. */
export const FAILING_DAY_MS = 24 * HOUR;

/** An endpoint that has only failed for so many days is disabled. */
export const MAX_FAILING_DAYS = 5;

/**
 * How long to wait after an attempt failed, jitter included; undefined when it was the last one.
 *
 * CHOICE: up to a tenth longer than the schedule says, never shorter, so that what failed together does not come back
 * together. How much follows from the delivery, not from chance: nothing is drawn beside the requests, which in a
 * seeded server would move the ids that they draw.
 *
 * @param failures attempts that failed since the schedule began, this one included.
 */
export function retryDelayMs(failures: number, deliveryId: string): number | undefined {
  const delayMs = delaysMs[failures - 1];
  if (delayMs === undefined) return undefined;
  // 32 of the digest's bits, as a part of one.
  const share = Number.parseInt(hash('sha256', `${deliveryId}.${failures}`).slice(0, 8), 16) / 2 ** 32;
  return delayMs + Math.floor((delayMs / 10) * share);
}
