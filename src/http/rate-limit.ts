import {
  BurstyRateLimiter,
  RateLimiterMemory,
  RateLimiterPostgres,
  RateLimiterRes,
} from 'rate-limiter-flexible';
import { ApiError } from '../errors.ts';
import type { HttpExchange } from './http-exchange.ts';

/** How many requests an app may make. */
interface RateLimit {
  /** In each `durationSeconds`. */
  readonly points: number;
  readonly durationSeconds: number;
  /** At a rush, once in a while; `points` when left out. */
  readonly burst?: number;
}

/** A limit of one operation beside the one of the app. */
interface OperationLimit extends RateLimit {
  /** The operation whose allowance this one draws on; its own when left out. */
  readonly sharedWith?: string;
  /** How much of the allowance a request with this body takes; 1 when left out. */
  readonly costOf?: (body: unknown) => number;
}

/** Limits per app. An operation named in `operations` has a further limit of its own. */
export interface RateLimitOptions extends RateLimit {
  readonly operations?: Readonly<Record<string, OperationLimit>>;
  /** Shared through this pool by several processes; in the memory of this one when left out. */
  readonly postgres?: { readonly pool: PostgresPool; readonly schemaName?: string };
}

/** As much of a `pg.Pool` as is needed. */
interface PostgresPool {
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

function usersInBatch(body: unknown): number {
  return (body as { users: unknown[] }).users.length;
}

type LimitHeaders = Readonly<Record<string, string>>;

/** Counts requests. Both throw `too_many_requests`, and return the headers that say what is left. */
export interface RateLimiter {
  /** Counts one request, before its body is read. */
  countRequest(exchange: HttpExchange): Promise<LimitHeaders>;
  /** Counts what a valid request asks for beyond that; undefined where it is nothing. */
  countWork(exchange: HttpExchange): Promise<LimitHeaders | undefined>;
}

interface Limiter {
  readonly name: string;
  readonly limit: RateLimit;
  consume(key: string, points: number): Promise<RateLimiterRes>;
}

// CHOICE: a user's tokens draw on a fifth of what the app may ask for, and all users together on as much as the app.
const USER_SHARE = 5;

/**
 * The rate limit. Requests count for the app whose secret they carry, those with a user's token for the user and for
 * the app's users as a whole, those of operations that are open to all for the client's address. So no one can use up
 * the allowance of another.
 */
export function createRateLimiter(options: RateLimitOptions): RateLimiter {
  const ofApp = makeLimiter('app', options, options);
  const ofUser = makeLimiter('user', shareOf(options, USER_SHARE), options);
  const ofUsers = makeLimiter('users', options, options);
  const operations = options.operations ?? {};
  const ofOperation = new Map(
    Object.entries(operations)
      .filter(([, { sharedWith }]) => sharedWith === undefined)
      .map(([id, limit]) => [id, makeLimiter(id, limit, options)]),
  );

  const count = async (exchange: HttpExchange, points: number): Promise<LimitHeaders> => {
    const { app, userId, route, remoteAddress } = exchange;
    if (app === undefined || route?.operation.security === 'none') {
      return consume(ofApp, `address:${networkOf(remoteAddress)}`, points);
    }
    if (userId === undefined) return consume(ofApp, app.id, points);
    const headers = await consume(ofUser, `${app.id}:${userId}`, points);
    await consume(ofUsers, app.id, points);
    return headers;
  };

  return {
    countRequest: (exchange) => count(exchange, 1),
    async countWork(exchange) {
      const id = exchange.route?.operation.id ?? '';
      const extra = pointsOf(exchange) - 1;
      const headers = extra > 0 ? await count(exchange, Math.min(extra, options.points)) : undefined;
      const { sharedWith = id, costOf } = operations[id] ?? {};
      const limiter = ofOperation.get(sharedWith);
      if (limiter === undefined) return headers;
      return consume(limiter, exchange.app?.id ?? '', costOf?.(exchange.body) ?? 1);
    },
  };
}

function shareOf({ points, durationSeconds, burst = points }: RateLimit, parts: number): RateLimit {
  const share = (whole: number) => Math.max(1, Math.ceil(whole / parts));
  return { points: share(points), durationSeconds, burst: share(burst) };
}

const SIGNATURES_A_POINT = 10;

/**
 * What a request costs: a point, another for each wallet and user that it makes, and one for every ten authorization
 * signatures that have to be verified.
 */
function pointsOf({ body, headers }: HttpExchange): number {
  const signatures = headers['service-authorization-signature'];
  const signed = typeof signatures === 'string' ? signatures.split(',').length : 0;
  return 1 + makingsOf(body) + Math.floor(signed / SIGNATURES_A_POINT);
}

const makings = ['wallets', 'users', 'wallets_configuration'];

function makingsOf(body: unknown): number {
  if (typeof body !== 'object' || body === null) return 0;
  let count = 0;
  for (const name of makings) {
    const items: unknown = (body as Record<string, unknown>)[name];
    if (!Array.isArray(items)) continue;
    count += items.length;
    if (name === 'users') for (const user of items) count += makingsOf(user);
  }
  return count;
}

/** The address, and of IPv6 the /64 that one client commonly has to itself. */
export function networkOf(address: string): string {
  const plain = address.startsWith('::ffff:') ? address.slice('::ffff:'.length) : address;
  if (!plain.includes(':')) return plain;
  const [head = '', tail] = plain.split('::');
  const groups = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? 0 : 8 - groups.length - after.length;
  return [...groups, ...Array<string>(Math.max(0, zeros)).fill('0'), ...after].slice(0, 4).join(':');
}

async function consume(limiter: Limiter, key: string, points: number): Promise<LimitHeaders> {
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

/** Counts refused credentials by client address. */
export interface FailureLimit {
  /** @throws ApiError too_many_requests for an address that has used up its failures. */
  requireRoom(address: string): Promise<void>;
  count(address: string): Promise<void>;
}

/**
 * A limit of failures in the memory of this process.
 *
 * CHOICE: each process counts for itself: a count in the database would cost the look-up that it is to spare.
 */
export function createFailureLimit({
  points,
  durationSeconds,
}: {
  readonly points: number;
  readonly durationSeconds: number;
}): FailureLimit {
  const limiter = new RateLimiterMemory({ points, duration: durationSeconds });
  return {
    async requireRoom(address) {
      const used = await limiter.get(networkOf(address));
      if (used === null || used.consumedPoints < points) return;
      throw new ApiError('too_many_requests', undefined, {
        headers: { 'retry-after': String(Math.max(1, Math.ceil(used.msBeforeNext / 1000))) },
      });
    },
    async count(address) {
      await limiter.consume(networkOf(address)).catch((refusal: unknown) => {
        if (!(refusal instanceof RateLimiterRes)) throw refusal;
      });
    },
  };
}
