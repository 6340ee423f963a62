import { LRUCache } from 'lru-cache';
import type { Log } from '../ports/runtime.ts';
import {
  dropEmptyRateLevels,
  type RateLevelsPool,
  settleRateLevels,
} from '../storage/postgres/rate-levels.ts';

/** A token bucket: what can be used at once after a quiet period, and how fast that comes back. */
export interface Allowance {
  /** Names the limit in keys, headers and metrics. */
  readonly name: string;
  readonly capacity: number;
  readonly perSecond: number;
}

/** What was used of an allowance, after a request for points. */
interface Usage {
  readonly isGranted: boolean;
  /** The points in use; above the capacity when several processes have granted too much at once. */
  readonly level: number;
}

/**
 * The levels of all token buckets of a process.
 *
 * A level rises by the points of a request and falls with time; a request that would raise it above the capacity is
 * refused. Every decision is made in memory. With a shared table, each process adds what it has granted to the table five
 * times a second, in one statement for all keys, and takes over the levels that the statement returns, which contain
 * what the other processes have granted.
 *
 * So N processes grant at most N - 1 times (capacity + `SETTLE_MS` of refill) too much at once. They are all charged
 * with it: nothing more is granted until the level has fallen again, and the long-term rate is exact. While the table
 * cannot be reached, each process counts on its own.
 */
export interface RateLevels {
  /** Charges the points if the allowance has them left. */
  take(allowance: Allowance, key: string, points: number): Usage;
  /** The level now; charges nothing. */
  levelOf(allowance: Allowance, key: string): number;
  giveBack(allowance: Allowance, key: string, points: number): void;
}

export interface SharedLevels {
  readonly pool: RateLevelsPool;
  readonly log: Log;
}

interface RateLevelsOptions {
  readonly shared?: SharedLevels | undefined;
  /** A monotonic clock, ms. */
  readonly now?: () => number;
}

interface Bucket {
  level: number;
  atMs: number;
  readonly perSecond: number;
  /** What the table does not have yet. */
  unsettled: number;
  /** When the first of that was granted. */
  sinceMs: number;
}

/** CHOICE: how long a process decides without the newest levels of the others. */
const SETTLE_MS = 200;
/** Unsettled points that are older than a few turns are those of a table that hangs. */
const LATE_MS = 5 * SETTLE_MS;
/** CHOICE: those that were used least recently are forgotten first. An entry takes about 200 bytes. */
const MAX_KEYS = 100_000;
/** Keys in one statement. */
const KEYS_AT_ONCE = 5_000;
const SWEEP_MS = 60_000;

export function createRateLevels({
  shared,
  now = () => performance.now(),
}: RateLevelsOptions = {}): RateLevels {
  const buckets = new LRUCache<string, Bucket>({ max: MAX_KEYS });
  const share = shared === undefined ? undefined : shareLevels(shared, now);

  /** Its level as of now. */
  const bucketOf = ({ name, perSecond }: Allowance, key: string): readonly [string, Bucket] => {
    const id = `${name}:${key}`;
    const nowMs = now();
    const known = buckets.get(id);
    if (known === undefined) {
      const fresh = { level: 0, atMs: nowMs, perSecond, unsettled: 0, sinceMs: nowMs };
      buckets.set(id, fresh);
      return [id, fresh];
    }
    known.level = drained(known, nowMs);
    known.atMs = nowMs;
    return [id, known];
  };
  const charge = (id: string, bucket: Bucket, points: number): void => {
    bucket.level = Math.max(0, bucket.level + points);
    share?.add(id, bucket, points);
  };

  return {
    take(allowance, key, points) {
      const [id, bucket] = bucketOf(allowance, key);
      // A request that costs more than the whole allowance passes when nothing is used, and is paid off afterwards.
      const isGranted = bucket.level === 0 || bucket.level + points <= allowance.capacity;
      if (isGranted) charge(id, bucket, points);
      return { isGranted, level: bucket.level };
    },
    levelOf: (allowance, key) => bucketOf(allowance, key)[1].level,
    giveBack(allowance, key, points) {
      const [id, bucket] = bucketOf(allowance, key);
      charge(id, bucket, -points);
    },
  };
}

function drained({ level, atMs, perSecond }: Bucket, nowMs: number): number {
  return Math.max(0, level - ((nowMs - atMs) / 1000) * perSecond);
}

/**
 * What the table is charged of the unsettled points. While a statement hangs, they are of a long time, in which most have
 * come back. Charged at once, they would refuse a caller who never was above the limit.
 */
function owed({ unsettled, sinceMs, perSecond }: Bucket, nowMs: number): number {
  const lateMs = Math.max(0, nowMs - sinceMs - LATE_MS);
  return unsettled <= 0 ? unsettled : Math.max(0, unsettled - (lateMs / 1000) * perSecond);
}

interface LevelShare {
  add(id: string, bucket: Bucket, points: number): void;
}

function shareLevels({ pool, log }: SharedLevels, now: () => number): LevelShare {
  /** The buckets with something that the table does not have. */
  let waiting = new Map<string, Bucket>();
  let isScheduled = false;
  let isAway = false;
  let sweptAtMs = now();

  const settle = async (): Promise<void> => {
    const settled = [...waiting].slice(0, KEYS_AT_ONCE);
    waiting = new Map([...waiting].slice(KEYS_AT_ONCE));
    const startMs = now();
    const granted = settled.map(([key, bucket]) => {
      return { key, points: owed(bucket, startMs), perSecond: bucket.perSecond };
    });
    // Whether or not the statement succeeds: after a failure it is unknown whether the table has them, and a level that is
    // too high would refuse requests.
    for (const [, bucket] of settled) bucket.unsettled = 0;
    const levels = await settleRateLevels(pool, granted);
    const nowMs = now();
    for (const [key, bucket] of settled) {
      // And what this process has granted since.
      bucket.level = Math.max(0, (levels.get(key) ?? 0) + owed(bucket, nowMs));
      bucket.atMs = nowMs;
    }
    if (nowMs - sweptAtMs < SWEEP_MS) return;
    sweptAtMs = nowMs;
    await dropEmptyRateLevels(pool);
  };
  const turn = async (): Promise<void> => {
    try {
      await settle();
      isAway = false;
    } catch (err) {
      if (!isAway && pool.ended !== true) {
        log.warn(
          { err },
          'requests are counted by each process on its own until the database can be reached',
        );
      }
      isAway = true;
    }
    isScheduled = false;
    if (waiting.size > 0 && pool.ended !== true) schedule();
  };
  const schedule = (): void => {
    if (isScheduled) return;
    isScheduled = true;
    setTimeout(() => void turn(), SETTLE_MS).unref();
  };
  return {
    add(id, bucket, points) {
      if (bucket.unsettled === 0) bucket.sinceMs = now();
      bucket.unsettled += points;
      waiting.set(id, bucket);
      schedule();
    },
  };
}
