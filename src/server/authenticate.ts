import { createHash, hash, timingSafeEqual } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { ApiError } from '../errors.ts';
import type { AuthenticatedApp } from '../ports/operation-context.ts';
import type { AppCredentials, AppDirectory, UserTokens } from '../ports/requests.ts';
import type { Clock } from '../ports/runtime.ts';
import { allowPage } from './origins.ts';
import { parseBody } from './parse-body.ts';
import { type FailureLimit, networkOf } from './rate-limit.ts';
import { operationOf, type RequestState } from './request-state.ts';

interface BasicCredentials {
  readonly appId: string;
  readonly secret: string;
}

/**
 * Parses HTTP Basic credentials (RFC 7617): `Basic` and the base64 of `id:secret`. The id contains no colon. Returns
 * undefined for other headers.
 */
function parseBasic(header: string): BasicCredentials | undefined {
  const encoded = /^basic +([A-Za-z0-9+/_-]+={0,2}) *$/i.exec(header)?.[1];
  if (encoded === undefined) return undefined;
  const text = Buffer.from(encoded, 'base64').toString('utf8');
  // PostgreSQL rejects U+0000 in text parameters.
  if (text.includes('\0')) return undefined;
  const colon = text.indexOf(':');
  return colon === -1 ? undefined : { appId: text.slice(0, colon), secret: text.slice(colon + 1) };
}

interface ClientCredentials {
  readonly clientId: string;
  /** The client secret. Undefined for a public client. */
  readonly secret: string | undefined;
}

/** The app whose credentials an OAuth client sent in the body (RFC 6749 section 2.3.1). */
interface Client {
  readonly app: AppCredentials;
  /** Whether the client sent no secret. */
  readonly isPublic: boolean;
}

type FindClient = (state: RequestState) => Promise<Client>;

/**
 * Returns whether an OAuth client must send its credentials in the body, because it sent no header with credentials.
 */
export function sendsCredentialsInBody({ headers, route }: RequestState): boolean {
  return route?.operation.security === 'oauth-client' && headers.authorization === undefined;
}

/** Creates the refusal of a client. It does not reveal which part of the credentials is wrong. */
function invalidClient(message?: string): ApiError {
  return new ApiError('invalid_client', message);
}

/**
 * Returns a function that finds the client of a request whose body has been read. It throws `invalid_client`, or the
 * errors of `parseBody`.
 */
function createFindClient(
  apps: AppDirectory,
  isSecret: (secret: string, app: AppCredentials | undefined) => boolean,
): FindClient {
  return async (state) => {
    const { clientId, secret } = readClientCredentials(state);
    const app = await apps.find(clientId);
    const isKnown = secret === undefined ? app?.admitsPublicClients === true : isSecret(secret, app);
    if (!isKnown || app === undefined) throw invalidClient();
    return { app, isPublic: secret === undefined };
  };
}

/**
 * Reads the credentials of an OAuth client from the body.
 *
 * @throws ApiError invalid_client, and the errors of `parseBody`.
 */
export function readClientCredentials(state: RequestState): ClientCredentials {
  const body = parseBody(operationOf(state), state.headers, state.rawBody);
  const { client_id: clientId = state.headers['service-app-id'], client_secret: secret } = (body ??
    {}) as Record<string, unknown>;
  if (typeof clientId !== 'string' || clientId === '') {
    throw invalidClient('expected HTTP Basic credentials, or `client_id` in the body');
  }
  // PostgreSQL rejects U+0000 in text parameters.
  if (clientId.includes('\0')) throw invalidClient();
  if (secret !== undefined && typeof secret !== 'string') throw invalidClient();
  return { clientId, secret };
}

/**
 * Requires that the body and the headers name no client other than that of the credentials.
 *
 * @throws ApiError invalid_request
 */
export function requireSameClient({ app, body, headers }: RequestState): void {
  const { client_id: clientId } = (body ?? {}) as { client_id?: string };
  const named = [clientId, headers['service-app-id']].find((id) => id !== undefined && id !== app?.id);
  if (named !== undefined) {
    throw new ApiError('invalid_request', `the credentials are not those of the client \`${named}\``);
  }
}

/** Returns the error for an invalid body of an OAuth client, with the codes of RFC 6749 section 5.2. */
export function clientFault({ body }: RequestState, fault: ApiError): ApiError {
  const { grant_type: grantType } = (body ?? {}) as { grant_type?: unknown };
  const issues = (fault.data?.issues ?? []) as readonly { readonly pointer: string }[];
  if (typeof grantType !== 'string' || !issues.some(({ pointer }) => pointer === '/grant_type')) return fault;
  const message = `unsupported grant type \`${grantType.slice(0, 100)}\``;
  return new ApiError('unsupported_grant_type', message, { data: { issues } });
}

/**
 * Returns the possible readings of a Basic header. RFC 6749 §2.3.1: OAuth clients form-encode both parts before they
 * apply RFC 7617. Many clients do not, so unencoded parts are accepted too.
 */
export function readClientBasic(header: string): BasicCredentials[] {
  const plain = parseBasic(header);
  if (plain === undefined) return [];
  const [appId, secret] = [plain.appId, plain.secret].map(decodeFormPart);
  const isEncoded = appId !== plain.appId || secret !== plain.secret;
  return isEncoded && appId !== undefined && secret !== undefined ? [{ appId, secret }, plain] : [plain];
}

function decodeFormPart(text: string): string | undefined {
  try {
    const decoded = decodeURIComponent(text.replaceAll('+', ' '));
    return decoded.includes('\0') ? undefined : decoded;
  } catch {
    return undefined;
  }
}

interface AuthenticateOptions {
  readonly apps: AppDirectory;
  readonly userTokens?: UserTokens | undefined;
  readonly clock: Clock;
  /** Limits rejected credentials per client address. Default: unlimited. */
  readonly failures?: FailureLimit | undefined;
  /** Whether an app that lists no origins accepts web pages of this origin. Default: none. */
  readonly admitsUnlisted?: (origin: string) => boolean;
}

/**
 * Sets `app` and, for a user's token, `userId` of a request, or throws the error that fits the operation's `security`.
 * While an OAuth client's body with its credentials has not been read, it does nothing.
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
 * Creates the check of credentials. An operation accepts one or several of these: HTTP Basic of the app, a user's
 * Bearer token, the origin of one of the app's web pages, or the credentials of an OAuth client. Public operations need
 * none.
 *
 * The check throws `missing_or_invalid_token`, `invalid_app_credentials`, `missing_or_invalid_service_app_id` or
 * `invalid_client`.
 *
 * NOTE: unknown paths require credentials too, so strangers cannot find out which paths exist.
 */
export function createAuthenticate(options: AuthenticateOptions): Authenticate {
  const { apps, userTokens, clock, failures, admitsUnlisted = () => false } = options;
  // Accepted `Authorization` headers by their SHA-256, so that most requests need no database. The time of a look-up by
  // digest leaks nothing: a caller cannot approach an unknown digest byte by byte.
  const accepted = new LRUCache<string, CachedApp>({ max: MAX_CACHED });

  const authenticateApp = async (
    state: RequestState,
    header: string,
    limitFailures: LookUp,
  ): Promise<void> => {
    const digest = hash('sha256', header, 'base64');
    const cached = accepted.get(digest);
    if (cached !== undefined && cached.generation === apps.generation() && clock.now() < cached.untilMs) {
      acceptSecret(state, cached.app);
      return;
    }
    await limitFailures(state, () => lookUp(state, header, digest));
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

  /**
   * Lets a web page read the response if the app allows its origin.
   * @returns whether the request comes from such a page.
   */
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

  // Callers with cached credentials bypass the limit, so failures from the same address do not lock them out.
  const limitFailures =
    failures === undefined ? (_state: RequestState, work: () => Promise<void>) => work() : counted(failures);

  return async (state) => {
    const security = state.route?.operation.security ?? 'app';
    if (security === 'none') return await nameApp(state);
    if (security === 'oauth-client') {
      if (sendsCredentialsInBody(state) && !state.isBodyRead) return;
      return await limitFailures(state, () => authenticateClient(state));
    }
    const header = state.headers.authorization;
    if (header === undefined && security === 'app-or-origin' && state.headers.origin !== undefined)
      return await limitFailures(state, () => authenticateOrigin(state));
    if (header === undefined) throw new ApiError('missing_or_invalid_token');
    const token = security === 'app-or-user' ? parseBearer(header) : undefined;
    if (token !== undefined) return await limitFailures(state, () => authenticateUser(state, token));
    await authenticateApp(state, header, limitFailures);
  };
}

type LookUp = (state: RequestState, work: () => Promise<void>) => Promise<void>;

/**
 * Returns a wrapper that refuses an address with too many wrong credentials, before any look-up, and counts failures.
 */
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

/** Returns the token in a Bearer header (RFC 6750 §2.1); undefined for other headers. */
function parseBearer(header: string): string | undefined {
  return /^bearer +([A-Za-z0-9._~+/-]+=*) *$/i.exec(header)?.[1];
}

// The hash to compare for unknown apps, so that they take as long as a known app with a wrong secret.
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
