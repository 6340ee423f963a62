import {
  BurstyRateLimiter,
  RateLimiterMemory,
  RateLimiterPostgres,
  RateLimiterRes,
} from 'rate-limiter-flexible';
import { ApiError } from '../errors.ts';
import type { HttpExchange } from './http-exchange.ts';

/** How many requests an app may make. */
export interface RateLimit {
  /** In each `durationSeconds`. */
  readonly points: number;
  readonly durationSeconds: number;
  /** At a rush, once in a while; `points` when left out. */
  readonly burst?: number;
}

/** A limit of one operation beside the one of the app. */
export interface OperationLimit extends RateLimit {
  /** The operation whose allowance this one draws on; its own when left out. */
  readonly sharedWith?: string;
  /** How much of the allowance a request takes; 1 when left out. */
  readonly costOf?: (exchange: HttpExchange) => number;
}

/** Limits per app. An operation named in `operations` has a further limit of its own. */
export interface RateLimitOptions extends RateLimit {
  readonly operations?: Readonly<Record<string, OperationLimit>>;
  /** Shared through this pool by several processes; in the memory of this one when left out. */
  readonly postgres?: { readonly pool: PostgresPool; readonly schemaName?: string };
}

/** As much of a `pg.Pool` as is needed. */
export interface PostgresPool {
  query(statement: { text: string; values?: unknown[]; name?: string }): Promise<unknown>;
}

/**
 * Limits of an app: requests per second with a burst, and users made a minute, single or in batches.
 * A user limit of 0 leaves user creation under the general limit alone.
 */
export function rateLimitOfApp(
  { perSecond, burst }: { perSecond: number; burst: number },
  usersPerMinute: number,
): RateLimitOptions {
  const users = { points: usersPerMinute, durationSeconds: 60 };
  return {
    points: perSecond,
    durationSeconds: 1,
    burst,
    operations:
      usersPerMinute === 0
        ? {}
        : {
            createUser: users,
            batchCreateUsers: { ...users, sharedWith: 'createUser', costOf: usersInBatch },
          },
  };
}

const MAX_BATCH = 20;

/** Read before the body is judged: what is no batch is one request, and no batch is larger than the contract allows. */
function usersInBatch({ rawBody }: HttpExchange): number {
  try {
    const { users } = JSON.parse(rawBody.toString('utf8')) as { users?: unknown };
    return Array.isArray(users) ? Math.min(Math.max(users.length, 1), MAX_BATCH) : 1;
  } catch {
    return 1;
  }
}

/** Counts the request and returns the headers that tell what is left. Throws `too_many_requests`. */
export type CountRequest = (exchange: HttpExchange) => Promise<Record<string, string>>;

interface Limiter {
  readonly name: string;
  readonly limit: RateLimit;
  consume(key: string, points: number): Promise<RateLimiterRes>;
}

/** The rate limit. Requests are counted for the app; those of operations open to all, for the client's address. */
export function createRateLimit(options: RateLimitOptions): CountRequest {
  const general = makeLimiter('app', options, options);
  const operations = options.operations ?? {};
  const special = new Map(
    Object.entries(operations)
      .filter(([, { sharedWith }]) => sharedWith === undefined)
      .map(([id, limit]) => [id, makeLimiter(id, limit, options)]),
  );
  return async (exchange) => {
    const key = exchange.app?.id || `address:${exchange.remoteAddress}`;
    const headers = await consume(general, key, 1);
    const id = exchange.route?.operation.id ?? '';
    const { sharedWith = id, costOf } = operations[id] ?? {};
    const limiter = special.get(sharedWith);
    return limiter === undefined ? headers : consume(limiter, key, costOf?.(exchange) ?? 1);
  };
}

async function consume(limiter: Limiter, key: string, points: number): Promise<Record<string, string>> {
  try {
    return headersOf(limiter, await limiter.consume(key, points));
  } catch (refusal) {
    if (!(refusal instanceof RateLimiterRes)) throw refusal;
    const headers = headersOf(limiter, refusal);
    const retryAfter = String(Math.max(1, secondsUntilReset(refusal)));
    throw new ApiError('too_many_requests', undefined, {
      headers: { ...headers, 'retry-after': retryAfter },
    });
  }
}

/** The two dialects in use: `X-RateLimit-*`, and `RateLimit` of draft-ietf-httpapi-ratelimit-headers. */
function headersOf({ name, limit }: Limiter, left: RateLimiterRes): Record<string, string> {
  const remaining = Math.max(0, left.remainingPoints);
  const seconds = secondsUntilReset(left);
  return {
    'x-ratelimit-limit': String(limit.points),
    'x-ratelimit-remaining': String(remaining),
    'x-ratelimit-reset': String(seconds),
    ratelimit: `"${name}";r=${remaining};t=${seconds}`,
    'ratelimit-policy': `"${name}";q=${limit.points};w=${limit.durationSeconds}`,
  };
}

function secondsUntilReset(left: RateLimiterRes): number {
  return Math.ceil(left.msBeforeNext / 1000);
}

function makeLimiter(name: string, limit: RateLimit, options: RateLimitOptions): Limiter {
  const steady = makeStore(name, limit.points, limit.durationSeconds, options);
  const saved = (limit.burst ?? limit.points) - limit.points;
  if (saved <= 0) return { name, limit, consume: (key, points) => steady.consume(key, points) };
  // A second allowance that fills up more slowly: what a steady caller has saved for a rush.
  const rush = makeStore(`${name}-burst`, saved, limit.durationSeconds * 10, options);
  const both = new BurstyRateLimiter(steady, rush);
  return { name, limit, consume: (key, points) => both.consume(key, points) };
}

function makeStore(name: string, points: number, duration: number, { postgres }: RateLimitOptions) {
  const settings = { keyPrefix: name, points, duration };
  if (postgres === undefined) return new RateLimiterMemory(settings);
  const shared = {
    ...settings,
    storeClient: postgres.pool,
    storeType: 'pool',
    tableName: 'rate_limits',
    ...(postgres.schemaName === undefined ? {} : { schemaName: postgres.schemaName }),
    // The database being away must not stop requests that need no database; each process then counts for itself,
    // and so it does until the table has been made.
    insuranceLimiter: new RateLimiterMemory(settings),
  };
  return new RateLimiterPostgres(shared, () => undefined);
}
