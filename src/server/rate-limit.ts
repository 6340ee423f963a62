import { hash } from 'node:crypto';
import { ApiError } from '../errors.ts';
import { type Allowance, createRateLevels, type RateLevels, type SharedLevels } from './rate-levels.ts';
import type { Guess, RequestState } from './request-state.ts';

/** How many points may be used in which time. */
interface RateLimit {
  /** Per `durationSeconds`. */
  readonly points: number;
  readonly durationSeconds: number;
  /** The maximum number of points that can be used in one burst after a quiet period. Default: `points`. */
  readonly burst?: number;
}

/** A limit of one operation, in addition to the app's limit. */
interface OperationLimit extends RateLimit {
  /** The operation whose allowance this operation shares. Default: it has its own. */
  readonly sharedWith?: string;
  /** Returns the points of a request with this body. Default: 1. */
  readonly costOf?: (body: unknown) => number;
}

/** The limit of an app. The operations in `operations` have additional limits. */
export interface RateLimitOptions extends RateLimit {
  readonly operations?: Readonly<Record<string, OperationLimit>>;
  /** Counts together with other processes, in a table on PostgreSQL. Default: this process counts on its own. */
  readonly postgres?: SharedLevels;
  /** Called with the name of the limit that refuses a request. */
  readonly onRefused?: ((limit: string) => void) | undefined;
  /** A monotonic clock, ms. Default: that of the process. */
  readonly now?: () => number;
}

/**
 * Returns the limits of an app: requests per second with a burst, and created users per minute, single or in batches.
 * With `usersPerMinute` 0, only the general limit applies.
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

/**
 * Counts requests. Each method throws `too_many_requests` when a limit is exceeded. The first two return headers with
 * the remaining points.
 */
export interface RateLimiter {
  /** Counts one request, before its body is read. */
  countRequest(state: RequestState): Promise<LimitHeaders>;
  /** Counts the additional points of a validated request. Returns undefined if it has none. */
  countWork(state: RequestState): Promise<LimitHeaders | undefined>;
  /** Counts a static page against the address of the client. */
  countPage(address: string, bytes: number): void;
  /**
   * Charges a valid request that contains a one-time code until the guess is settled. Returns undefined for other
   * requests.
   */
  chargeGuess(state: RequestState): Guess | undefined;
}

interface Limiter {
  readonly limit: RateLimit;
  readonly allowance: Allowance;
}

// CHOICE: each user has a fifth of the app's limit, and all users together as much as the app.
const USER_SHARE = 5;

/**
 * CHOICE: the limits of wrong one-time codes. For one address and all accounts of an app: ten, then one a minute. For
 * one account from any address: twenty, then one every three minutes, so trying all six-digit codes takes years.
 * Callers with and without the app secret have separate counts, so that callers without it cannot use up the guesses of
 * a backend.
 */
const guessesOfAddress: RateLimit = { points: 10, durationSeconds: 600 };
const guessesOfAccount: RateLimit = { points: 20, durationSeconds: 3_600 };

/**
 * Creates the rate limiter. A request is charged to the party that has proved its identity: to the app if its secret
 * was verified, or to the user, and to all users of the app together, with a user's token. All other requests are
 * charged to the client's address. So no caller can use up the points of another.
 */
export function createRateLimiter(options: RateLimitOptions): RateLimiter {
  const { postgres: shared, now, onRefused } = options;
  const levels = createRateLevels({ shared, ...(now !== undefined && { now }) });
  const ofApp = makeLimiter('app', options);
  const ofAddress = makeLimiter('address', options);
  const ofUser = makeLimiter('user', shareOf(options, USER_SHARE));
  const ofUsers = makeLimiter('users', options);
  const operations = options.operations ?? {};
  const ofOperation = new Map(
    Object.entries(operations)
      .filter(([, { sharedWith }]) => sharedWith === undefined)
      .map(([id, limit]) => [id, makeLimiter(id, limit)]),
  );

  const consume = (limiter: Limiter, key: string, points: number): LimitHeaders => {
    const { isGranted, level } = levels.take(limiter.allowance, key, points);
    const headers = headersOf(limiter, level);
    if (isGranted) return headers;
    onRefused?.(limiter.allowance.name);
    throw tooMany(limiter.allowance, level + points, headers);
  };
  const count = (state: RequestState, points: number): LimitHeaders => {
    const { app, userId, hasAppSecret, remoteAddress } = state;
    if (app !== undefined && userId !== undefined) {
      const headers = consume(ofUser, `${app.id}:${userId}`, points);
      consume(ofUsers, app.id, points);
      return headers;
    }
    if (app !== undefined && hasAppSecret) return consume(ofApp, app.id, points);
    return consume(ofAddress, networkOf(remoteAddress), points);
  };

  return {
    countRequest: async (state) => count(state, 1),
    async countWork(state) {
      const id = state.route?.operation.id ?? '';
      const extra = pointsOf(state) - 1;
      const headers = extra > 0 ? count(state, Math.min(extra, options.points)) : undefined;
      const { sharedWith = id, costOf } = operations[id] ?? {};
      const limiter = ofOperation.get(sharedWith);
      if (limiter === undefined) return headers;
      const { app, hasAppSecret, remoteAddress } = state;
      const key = app !== undefined && hasAppSecret ? app.id : `address:${networkOf(remoteAddress)}`;
      return consume(limiter, key, costOf?.(state.body) ?? 1);
    },
    countPage(address, bytes) {
      const points = 1 + Math.floor(bytes / BYTES_PER_POINT);
      consume(ofAddress, networkOf(address), Math.min(points, options.points));
    },
    chargeGuess: (state) => chargeGuess(state, levels, onRefused),
  };
}

function makeLimiter(name: string, limit: RateLimit): Limiter {
  const { points, durationSeconds, burst = points } = limit;
  return {
    limit,
    allowance: { name, capacity: Math.max(points, burst), perSecond: points / durationSeconds },
  };
}

function shareOf({ points, durationSeconds, burst = points }: RateLimit, parts: number): RateLimit {
  const share = (whole: number) => Math.max(1, Math.ceil(whole / parts));
  return { points: share(points), durationSeconds, burst: share(burst) };
}

/** The name of the limit of wrong one-time codes in metrics. */
const GUESSES = 'one_time_codes';

const codesOfAddress = makeLimiter('codes-of-address', guessesOfAddress).allowance;
const codesOfAccount = makeLimiter('codes-of-account', guessesOfAccount).allowance;

/**
 * Charges a guess before the code is compared, because simultaneous requests must not all count as the first guess.
 * Returns undefined if the request contains no code.
 *
 * @throws ApiError too_many_requests
 */
function chargeGuess(
  state: RequestState,
  levels: RateLevels,
  onRefused: RateLimitOptions['onRefused'],
): Guess | undefined {
  const { app, hasAppSecret, route, remoteAddress } = state;
  if (route?.operation.id !== 'authenticatePasswordless' || app === undefined) return undefined;
  const accounts = accountsOf(state).map((account) => {
    const key = hash('sha256', JSON.stringify([app.id, hasAppSecret, account]), 'base64url');
    return [codesOfAccount, key] as const;
  });
  // With the app secret, guesses are not counted by address, because a backend has one address for all its users.
  const address = hasAppSecret ? [] : [[codesOfAddress, `${app.id}:${networkOf(remoteAddress)}`] as const];
  const charged: (readonly [Allowance, string])[] = [];
  const giveBack = (): void => {
    for (const [allowance, key] of charged) levels.giveBack(allowance, key, 1);
  };
  for (const [allowance, key] of [...address, ...accounts]) {
    const { isGranted, level } = levels.take(allowance, key, 1);
    if (!isGranted) {
      giveBack();
      onRefused?.(GUESSES);
      throw tooMany(allowance, level + 1);
    }
    charged.push([allowance, key]);
  }
  return {
    settle(error) {
      const isWrong = error instanceof ApiError && error.code === 'invalid_credentials';
      if (!isWrong) giveBack();
    },
  };
}

/** Returns the keys of the accounts that a login names. All spellings of an account have the same key. */
function accountsOf({ body }: RequestState): string[] {
  const { email, phone_number: number } = (body ?? {}) as { email?: unknown; phone_number?: unknown };
  const accounts: string[] = [];
  if (typeof email === 'string') accounts.push(`email:${email.toLowerCase()}`);
  // Use only the last eight digits, because the country code may be omitted.
  if (typeof number === 'string') accounts.push(`phone:${digitsOf(number).slice(-8)}`);
  return accounts;
}

function digitsOf(number: string): string {
  return number.normalize('NFKC').replaceAll(/[^0-9]/g, '');
}

/**
 * Creates the refusal, with the time after which the request would be accepted.
 *
 * @param level the level, including the refused points.
 */
function tooMany({ capacity, perSecond }: Allowance, level: number, headers?: LimitHeaders): ApiError {
  const seconds = Math.max(1, Math.ceil((level - capacity) / perSecond));
  return new ApiError('too_many_requests', undefined, {
    headers: { ...headers, 'retry-after': String(seconds) },
  });
}

const FREE_SIGNATURES = 2;
const SIGNATURES_PER_POINT = 2;
const BYTES_PER_POINT = 64 * 1024;

/**
 * Returns the points of a request: one; one for each wallet and user that it creates; one for every two authorization
 * signatures beyond the first two; one for every 64 KiB of the body. Checking an invalid signature takes about as much
 * CPU time as a small request.
 */
function pointsOf({ body, rawBody, headers }: RequestState): number {
  const signatures = headers['service-authorization-signature'];
  const signed = typeof signatures === 'string' ? signatures.split(',').length : 0;
  const beyond = Math.max(0, signed - FREE_SIGNATURES);
  const size = Math.floor(rawBody.length / BYTES_PER_POINT);
  return 1 + countCreatedResources(body) + Math.ceil(beyond / SIGNATURES_PER_POINT) + size;
}

/** The members of a body whose items each create a resource. */
const createdLists = ['wallets', 'users', 'wallets_configuration'];

function countCreatedResources(body: unknown): number {
  if (typeof body !== 'object' || body === null) return 0;
  let count = 0;
  for (const name of createdLists) {
    const items: unknown = (body as Record<string, unknown>)[name];
    if (!Array.isArray(items)) continue;
    count += items.length;
    if (name === 'users') for (const user of items) count += countCreatedResources(user);
  }
  return count;
}

/** Returns the IPv4 address, or the /64 of an IPv6 address, which usually belongs to a single client. */
export function networkOf(address: string): string {
  const plain = address.startsWith('::ffff:') ? address.slice('::ffff:'.length) : address;
  if (!plain.includes(':')) return plain;
  const [head = '', tail] = plain.split('::');
  const groups = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? 0 : 8 - groups.length - after.length;
  return [...groups, ...Array<string>(Math.max(0, zeros)).fill('0'), ...after].slice(0, 4).join(':');
}

/**
 * Returns the headers in the two common forms: `X-RateLimit-*`, and `RateLimit` of
 * draft-ietf-httpapi-ratelimit-headers.
 */
function headersOf({ limit, allowance }: Limiter, level: number): Record<string, string> {
  const { name, capacity, perSecond } = allowance;
  const left = Math.max(0, Math.floor(capacity - level));
  const remaining = Math.min(limit.points, left);
  // The time until all points are available again.
  const seconds = Math.ceil(Math.min(level, capacity) / perSecond);
  return {
    'x-ratelimit-limit': String(limit.points),
    'x-ratelimit-remaining': String(remaining),
    'x-ratelimit-reset': String(seconds),
    ratelimit: `"${name}";r=${remaining};t=${seconds}`,
    'ratelimit-policy': `"${name}";q=${limit.points};w=${limit.durationSeconds}`,
  };
}

/** Counts rejected credentials by client address. */
export interface FailureLimit {
  /**
   * Requires that the address has not sent too many rejected credentials.
   *
   * @throws ApiError too_many_requests
   */
  requireAttemptsLeft(address: string): Promise<void>;
  count(address: string): Promise<void>;
}

/**
 * Creates a limit of rejected credentials, in the memory of this process.
 *
 * CHOICE: each process counts on its own, because counting in the database would cost as much as the look-up that this
 * limit avoids.
 */
export function createFailureLimit({
  points,
  durationSeconds,
  onRefused,
  now,
}: Pick<RateLimitOptions, 'points' | 'durationSeconds' | 'onRefused' | 'now'>): FailureLimit {
  const { allowance } = makeLimiter('rejected_credentials', { points, durationSeconds });
  const levels = createRateLevels({ ...(now !== undefined && { now }) });
  return {
    async requireAttemptsLeft(address) {
      const level = levels.levelOf(allowance, networkOf(address)) + 1;
      if (level <= points) return;
      onRefused?.(allowance.name);
      throw tooMany(allowance, level);
    },
    async count(address) {
      levels.take(allowance, networkOf(address), 1);
    },
  };
}
