import { createHash, hash, timingSafeEqual } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { ApiError } from '../errors.ts';
import type { AuthenticatedApp } from '../ports/operation-context.ts';
import type { AppCredentials, AppDirectory, UserTokens } from '../ports/requests.ts';
import type { Clock } from '../ports/runtime.ts';
import {
  createFindClient,
  invalidClient,
  parseBasic,
  readClientBasic,
  sendsCredentialsInBody,
} from './oauth-clients.ts';
import { allowPage } from './origins.ts';
import { type FailureLimit, networkOf } from './rate-limit.ts';
import type { RequestState } from './request-state.ts';

export interface AuthenticateOptions {
  readonly apps: AppDirectory;
  readonly userTokens?: UserTokens | undefined;
  readonly clock: Clock;
  /** The limit of rejected credentials per client address. Default: unlimited. */
  readonly failures?: FailureLimit | undefined;
  /** The web pages that an app without listed origins admits. Default: none. */
  readonly admitsUnlisted?: (origin: string) => boolean;
}

/**
 * Sets `app` (and `userId`) of a request, or throws the error for the operation's `security`. For OAuth clients with
 * credentials in the body, it does nothing until the body has been read.
 */
export type Authenticate = (state: RequestState) => Promise<void>;

// Cached credentials expire, because another process may have rotated a secret.
const CACHE_MS = 2_000;
const MAX_CACHED = 1_000;
const APP_ID_HEADER = 'service-app-id';

interface CachedApp {
  readonly app: AuthenticatedApp;
  readonly generation: number;
  readonly untilMs: number;
}

/**
 * Checks credentials: HTTP Basic of the app, a user's Bearer token if the operation accepts one, the origin of a web
 * page of the app where that suffices, or the credentials of an OAuth client. Public operations need none.
 *
 * Throws `missing_or_invalid_token`, `invalid_app_credentials`, `missing_or_invalid_service_app_id`, `invalid_client`.
 *
 * NOTE: unknown paths require credentials too, so unauthenticated callers cannot find out which paths exist.
 */
export function createAuthenticate(options: AuthenticateOptions): Authenticate {
  const { apps, userTokens, clock, failures, admitsUnlisted = () => false } = options;
  // Accepted `Authorization` headers by their SHA-256, so that most requests need no database. The timing of a look-up
  // by digest leaks nothing: a caller cannot approach an unknown digest byte by byte.
  const accepted = new LRUCache<string, CachedApp>({ max: MAX_CACHED });

  const authenticateApp = async (state: RequestState, header: string, look: LookUp): Promise<void> => {
    const digest = hash('sha256', header, 'base64');
    const cached = accepted.get(digest);
    if (cached !== undefined && cached.generation === apps.generation() && clock.now() < cached.untilMs) {
      acceptSecret(state, cached.app);
      return;
    }
    await look(state, () => lookUp(state, header, digest));
  };

  const lookUp = async (state: RequestState, header: string, digest: string): Promise<void> => {
    const credentials = parseBasic(header);
    if (credentials === undefined) throw new ApiError('missing_or_invalid_token');
    const generation = apps.generation();
    const record = await apps.find(credentials.appId);
    if (!isSecretOf(credentials.secret, record) || record === undefined) {
      throw new ApiError('invalid_app_credentials');
    }
    const app = { id: record.id };
    accepted.set(digest, { app, generation, untilMs: clock.now() + CACHE_MS });
    acceptSecret(state, app);
  };

  const findClient = createFindClient(apps, isSecretOf);
  const authenticateClient = async (state: RequestState): Promise<void> => {
    const header = state.headers.authorization;
    if (header === undefined) {
      const { app, isPublic } = await findClient(state);
      state.app = { id: app.id };
      state.hasAppSecret = !isPublic;
      if (isPublic) state.publicClientNetwork = networkOf(state.remoteAddress);
      return;
    }
    for (const { appId, secret } of readClientBasic(header)) {
      const record = await apps.find(appId);
      if (isSecretOf(secret, record)) state.app = { id: appId };
    }
    if (state.app === undefined) throw invalidClient();
    state.hasAppSecret = true;
  };

  /** Lets a page of an admitted origin read the response. Result: whether the request comes from such a page. */
  const admitPage = (state: RequestState, { allowedOrigins }: AppCredentials): boolean => {
    const { origin } = state.headers;
    if (origin === undefined) return false;
    const isAdmitted = allowedOrigins.length === 0 ? admitsUnlisted(origin) : allowedOrigins.includes(origin);
    if (isAdmitted) allowPage(state, origin);
    return isAdmitted;
  };

  const authenticateUser = async (state: RequestState, token: string): Promise<void> => {
    const appId = requireAppId(state);
    const record = await apps.find(appId);
    if (record === undefined) throw new ApiError('missing_or_invalid_token');
    admitPage(state, record);
    const isChange = state.route?.operation.method !== 'GET';
    const user = await userTokens?.verify(token, { appId, nowMs: state.nowMs, isChange });
    if (user === undefined) throw new ApiError('missing_or_invalid_token');
    state.app = { id: appId };
    state.userId = user.userId;
    state.sessionId = user.sessionId;
  };

  const authenticateOrigin = async (state: RequestState): Promise<void> => {
    const record = await apps.find(requireAppId(state));
    if (record === undefined || !admitPage(state, record)) throw new ApiError('missing_or_invalid_token');
    state.app = { id: record.id };
  };

  const nameApp = async (state: RequestState): Promise<void> => {
    const appId = state.headers[APP_ID_HEADER];
    const record = typeof appId === 'string' ? await apps.find(appId) : undefined;
    if (record === undefined) return;
    admitPage(state, record);
    state.app = { id: record.id };
  };

  // Cached credentials bypass the failure limit, so failures from the same address do not lock these callers out.
  const look =
    failures === undefined ? (_state: RequestState, work: () => Promise<void>) => work() : counted(failures);

  return async (state) => {
    const security = state.route?.operation.security ?? 'app';
    if (security === 'none') return await nameApp(state);
    if (security === 'oauth-client') {
      if (sendsCredentialsInBody(state) && !state.isBodyRead) return;
      return await look(state, () => authenticateClient(state));
    }
    const header = state.headers.authorization;
    if (header === undefined && security === 'app-or-origin' && state.headers.origin !== undefined)
      return await look(state, () => authenticateOrigin(state));
    if (header === undefined) throw new ApiError('missing_or_invalid_token');
    const token = security === 'app-or-user' ? parseBearer(header) : undefined;
    if (token !== undefined) return await look(state, () => authenticateUser(state, token));
    await authenticateApp(state, header, look);
  };
}

type LookUp = (state: RequestState, work: () => Promise<void>) => Promise<void>;

/** Refuses an address that has sent too many wrong credentials, before any look-up. */
function counted(failures: FailureLimit): LookUp {
  return async (state, work) => {
    await failures.requireAttemptsLeft(state.remoteAddress);
    try {
      await work();
    } catch (error) {
      if (error instanceof ApiError && error.status < 500) await failures.count(state.remoteAddress);
      throw error;
    }
  };
}

function acceptSecret(state: RequestState, app: AuthenticatedApp): void {
  if (requireAppId(state) !== app.id) throw new ApiError('invalid_app_credentials');
  state.app = app;
  state.hasAppSecret = true;
}

function requireAppId(state: RequestState): string {
  const appId = state.headers[APP_ID_HEADER];
  if (typeof appId !== 'string' || appId === '') throw new ApiError('missing_or_invalid_service_app_id');
  return appId;
}

/** RFC 6750 §2.1. */
function parseBearer(header: string): string | undefined {
  return /^bearer +([A-Za-z0-9._~+/-]+=*) *$/i.exec(header)?.[1];
}

// Compared for unknown apps, so that they take as long as a known app with a wrong secret.
const noHash = new Uint8Array(32);

function isSecretOf(secret: string, app: AppCredentials | undefined): boolean {
  return matchesAny(secret, app?.secretHashes ?? []);
}

function matchesAny(secret: string, hashes: readonly Uint8Array[]): boolean {
  const given = createHash('sha256').update(secret, 'utf8').digest();
  let isMatch = false;
  // INVARIANT: every hash is compared, even after a match, so the timing does not depend on which one matches.
  for (const known of hashes.length === 0 ? [noHash] : hashes) {
    if (known.length === given.length && timingSafeEqual(known, given)) isMatch = true;
  }
  return isMatch && hashes.length > 0;
}
