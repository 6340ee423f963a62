import { LRUCache } from 'lru-cache';
import type { Log } from '../ports/runtime.ts';
import {
  dropEmptyRateLevels,
  type RateLevelsPool,
  settleRateLevels,
} from '../storage/postgres/rate-levels.ts';

/** The capacity of a token bucket, and how fast it refills. */
export interface Allowance {
  /** Names the limit in keys, headers and metrics. */
  readonly name: string;
  readonly capacity: number;
  readonly perSecond: number;
}

/** The state of a bucket after a request for points. */
interface Usage {
  readonly isGranted: boolean;
  /** The points in use. Above the capacity when several processes have granted too much at the same time. */
  readonly level: number;
}

/**
 * The levels of all token buckets of a process. A level rises by the points of a request and falls with time. A request
 * that would raise it above the capacity is refused. Every decision is made in memory.
 *
 * With a shared table, each process adds its granted points to the table five times a second, in one statement for all
 * keys. The statement returns the levels including the points of other processes, and the process adopts them. So N
 * processes together exceed the limit by at most N - 1 times (capacity + `SETTLE_MS` of refill). The excess counts as
 * well: nothing more is granted until the level has fallen, so the long-term rate is exact. While the table is
 * unavailable, each process counts on its own.
 */
export interface RateLevels {
  /** Charges the points if the allowance has enough left. */
  take(allowance: Allowance, key: string, points: number): Usage;
  /** Returns the current level, without charging anything. */
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
  /** Points that were granted but are not in the table yet. */
  unsettled: number;
  /** When the first of the unsettled points was granted. */
  sinceMs: number;
}

/** CHOICE: how long a process decides without the latest levels of other processes. */
const SETTLE_MS = 200;
/** If points are older than a few intervals and still unsettled, the database is not responding. */
const LATE_MS = 5 * SETTLE_MS;
/**
 * CHOICE: the maximum number of buckets in memory; the least recently used are evicted first. Each takes about 200
 * bytes.
 */
const MAX_KEYS = 100_000;
/** The maximum number of keys in one statement. */
const KEYS_AT_ONCE = 5_000;
const SWEEP_MS = 60_000;

export function createRateLevels({
  shared,
  now = () => performance.now(),
}: RateLevelsOptions = {}): RateLevels {
  // With `max`, the cache would reserve its whole memory for every cell of the process: 2.4 MB.
  const buckets = new LRUCache<string, Bucket>({ maxSize: MAX_KEYS, sizeCalculation: () => 1 });
  const share = shared === undefined ? undefined : shareLevels(shared, now);

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
      // A request that costs more than the whole capacity is granted when the bucket is unused. The excess refills
      // afterwards.
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
 * Returns how many of the unsettled points are charged to the table. While a statement hangs, points accumulate
 * although most of them have been refilled. Charging all of them together would refuse a caller who never exceeded the
 * limit.
 */
function owed({ unsettled, sinceMs, perSecond }: Bucket, nowMs: number): number {
  const lateMs = Math.max(0, nowMs - sinceMs - LATE_MS);
  return unsettled <= 0 ? unsettled : Math.max(0, unsettled - (lateMs / 1000) * perSecond);
}

interface LevelShare {
  add(id: string, bucket: Bucket, points: number): void;
}

function shareLevels({ pool, log }: SharedLevels, now: () => number): LevelShare {
  /** The buckets with unsettled points. */
  let waiting = new Map<string, Bucket>();
  let isScheduled = false;
  let isUnavailable = false;
  let sweptAtMs = now();

  const settle = async (): Promise<void> => {
    const settled = [...waiting].slice(0, KEYS_AT_ONCE);
    waiting = new Map([...waiting].slice(KEYS_AT_ONCE));
    const startMs = now();
    const granted = settled.map(([key, bucket]) => {
      return { key, points: owed(bucket, startMs), perSecond: bucket.perSecond };
    });
    // Reset even if the statement fails. The table may or may not have the points, and charging them again could refuse
    // requests for no reason.
    for (const [, bucket] of settled) bucket.unsettled = 0;
    const levels = await settleRateLevels(pool, granted);
    const nowMs = now();
    for (const [key, bucket] of settled) {
      // Add the points that this process has granted since the statement began.
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
      isUnavailable = false;
    } catch (err) {
      if (!isUnavailable && pool.ended !== true) {
        log.warn({ err }, 'database unreachable; each process counts rate limits on its own');
      }
      isUnavailable = true;
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
