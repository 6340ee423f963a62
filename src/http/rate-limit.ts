import {
  BurstyRateLimiter,
  RateLimiterMemory,
  RateLimiterPostgres,
  RateLimiterRes,
} from 'rate-limiter-flexible';
import { ApiError } from '../errors.ts';
import type { Log } from '../ports/log.ts';
import type { HttpExchange } from './http-exchange.ts';

/** How many points an app may use. */
interface RateLimit {
  /** Per `durationSeconds`. */
  readonly points: number;
  readonly durationSeconds: number;
  /** The most that can be used at once after a quiet period. Default: `points`. */
  readonly burst?: number;
}

/** A limit of one operation, in addition to the app's limit. */
interface OperationLimit extends RateLimit {
  /** The operation whose allowance this one shares. Default: its own. */
  readonly sharedWith?: string;
  /** The points that a request with this body uses. Default: 1. */
  readonly costOf?: (body: unknown) => number;
}

/** Limits per app. Operations in `operations` have an additional limit. */
export interface RateLimitOptions extends RateLimit {
  readonly operations?: Readonly<Record<string, OperationLimit>>;
  /** Counts in PostgreSQL, shared by all processes. Default: in memory. */
  readonly postgres?: { readonly pool: PostgresPool; readonly log: Log; readonly schemaName?: string };
  /** Called with the name of the limit that refuses a request. */
  readonly onRefused?: ((limit: string) => void) | undefined;
}

/** The part of `pg.Pool` that is needed. */
interface PostgresPool {
  query(statement: { text: string; values?: unknown[]; name?: string }): Promise<unknown>;
  /** Whether it was closed. */
  readonly ended?: boolean;
}

/**
 * Limits of an app: requests per second with a burst, and created users per minute, one by one or in batches. A user
 * limit of 0 means that only the general limit applies to creating users.
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

/** Counts requests. Both methods return the headers with the remaining allowance and throw `too_many_requests`. */
export interface RateLimiter {
  /** Counts one request, before its body is read. */
  countRequest(exchange: HttpExchange): Promise<LimitHeaders>;
  /** Counts the additional points of a validated request; undefined if there are no limits to report. */
  countWork(exchange: HttpExchange): Promise<LimitHeaders | undefined>;
}

interface Limiter {
  readonly name: string;
  readonly onRefused: RateLimitOptions['onRefused'];
  readonly limit: RateLimit;
  consume(key: string, points: number): Promise<RateLimiterRes>;
}

// CHOICE: each user has a fifth of the app's allowance, and all users together have as much as the app.
const USER_SHARE = 5;

/**
 * Creates the rate limiter. A request counts against the app whose secret it sends; with a user's token, against the
 * user and against all users of the app; for public operations, against the client's address. So no caller can use up
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

const FREE_SIGNATURES = 2;
const SIGNATURES_A_POINT = 2;
const BYTES_A_POINT = 64 * 1024;

/**
 * The points of a request: one, plus one for each wallet and user that it creates, plus one for every two authorization
 * signatures beyond the first two and for every 64 KiB of the body. Checking an invalid signature takes about as much
 * CPU time as a small request.
 */
function pointsOf({ body, rawBody, headers }: HttpExchange): number {
  const signatures = headers['service-authorization-signature'];
  const signed = typeof signatures === 'string' ? signatures.split(',').length : 0;
  const beyond = Math.max(0, signed - FREE_SIGNATURES);
  const size = Math.floor(rawBody.length / BYTES_A_POINT);
  return 1 + makingsOf(body) + Math.ceil(beyond / SIGNATURES_A_POINT) + size;
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

/** The IPv4 address, or the /64 of an IPv6 address, which usually belongs to a single client. */
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
    limiter.onRefused?.(limiter.name);
    const headers = headersOf(limiter, refusal);
    const retryAfter = String(Math.max(1, secondsUntilReset(refusal)));
    throw new ApiError('too_many_requests', undefined, {
      headers: { ...headers, 'retry-after': retryAfter },
    });
  }
}

/** The two common forms: `X-RateLimit-*`, and `RateLimit` of draft-ietf-httpapi-ratelimit-headers. */
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
  const { onRefused } = options;
  if (saved <= 0) return { name, limit, onRefused, consume: (key, points) => steady.consume(key, points) };
  // The burst: a second allowance that refills more slowly.
  const rush = makeStore(`${name}-burst`, saved, limit.durationSeconds * 10, options);
  const both = new BurstyRateLimiter(steady, rush);
  return { name, limit, onRefused, consume: (key, points) => both.consume(key, points) };
}

const TABLE_RETRY_MS = 1_000;

function makeStore(name: string, points: number, duration: number, { postgres }: RateLimitOptions) {
  const settings = { keyPrefix: name, points, duration };
  if (postgres === undefined) return new RateLimiterMemory(settings);
  const shared = {
    ...settings,
    storeClient: postgres.pool,
    storeType: 'pool',
    tableName: 'rate_limits',
    ...(postgres.schemaName === undefined ? {} : { schemaName: postgres.schemaName }),
    // Requests that need no database must succeed while it is unavailable: each process then counts on its own, as it
    // does until the table exists.
    insuranceLimiter: new RateLimiterMemory(settings),
  };
  const { pool, log } = postgres;
  let hasWarned = false;
  const limiter = new RateLimiterPostgres(shared, (error) => {
    if (error != null) tryAgain();
  });
  // Of processes that create the table at the same moment, some get an error (42P07 or 42710), and the database may be
  // away. A limiter does not try again by itself: it would count on its own until the next start.
  function tryAgain(): void {
    const again = (): void => {
      if (pool.ended) return;
      new RateLimiterPostgres(shared, (error) => {
        if (error == null) {
          Object.assign(limiter, { tableCreated: true });
          return;
        }
        // Not at the first failure, which is usually another process that creates the table at the same moment.
        if (!hasWarned) {
          hasWarned = true;
          log.warn(
            { err: error, limit: name },
            'requests are counted by each process on its own until the table `rate_limits` can be created',
          );
        }
        tryAgain();
      });
    };
    setTimeout(again, TABLE_RETRY_MS).unref();
  }
  return limiter;
}

/** Counts rejected credentials by client address. */
export interface FailureLimit {
  /** @throws ApiError too_many_requests for an address that has used up its failures. */
  requireAttemptsLeft(address: string): Promise<void>;
  count(address: string): Promise<void>;
}

/**
 * A limit of failures in the memory of this process.
 *
 * CHOICE: each process counts on its own, because counting in the database would cost as much as the look-up that
 * this limit avoids.
 */
export function createFailureLimit({
  points,
  durationSeconds,
  onRefused,
}: Pick<RateLimitOptions, 'points' | 'durationSeconds' | 'onRefused'>): FailureLimit {
  const limiter = new RateLimiterMemory({ points, duration: durationSeconds });
  return {
    async requireAttemptsLeft(address) {
      const used = await limiter.get(networkOf(address));
      if (used === null || used.consumedPoints < points) return;
      onRefused?.('rejected_credentials');
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
