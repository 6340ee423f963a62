import { ApiError } from '../errors.ts';
import type { AppCredentials, AppDirectory } from '../ports/requests.ts';
import { parseBody } from './parse-body.ts';
import { operationOf, type RequestState } from './request-state.ts';

/** The parts of HTTP Basic credentials. */
interface BasicCredentials {
  readonly appId: string;
  readonly secret: string;
}

/**
 * RFC 7617: `Basic` and base64 of `id:secret`. The id contains no colon; neither part contains control characters.
 */
export function parseBasic(header: string): BasicCredentials | undefined {
  const encoded = /^basic +([A-Za-z0-9+/_-]+={0,2}) *$/i.exec(header)?.[1];
  if (encoded === undefined) return undefined;
  const text = Buffer.from(encoded, 'base64').toString('utf8');
  // PostgreSQL rejects U+0000 in text parameters.
  if (text.includes('\0')) return undefined;
  const colon = text.indexOf(':');
  return colon === -1 ? undefined : { appId: text.slice(0, colon), secret: text.slice(colon + 1) };
}

/** The credentials that a client presents. */
interface ClientCredentials {
  readonly clientId: string;
  /** Undefined: a public client. */
  readonly secret: string | undefined;
}

/** The app that the credentials in the body of an OAuth client name (RFC 6749 section 2.3.1). */
interface Client {
  readonly app: AppCredentials;
  /** The client sent no secret. */
  readonly isPublic: boolean;
}

type FindClient = (state: RequestState) => Promise<Client>;

/** Whether a request of an OAuth client carries its credentials in the body rather than in a header. */
export function sendsCredentialsInBody({ headers, route }: RequestState): boolean {
  return route?.operation.security === 'oauth-client' && headers.authorization === undefined;
}

/** The refusal of a client. It does not reveal which part of the credentials is wrong. */
export function invalidClient(message?: string): ApiError {
  return new ApiError('invalid_client', message);
}

/**
 * Finds the client of a request whose body has been read.
 *
 * @throws ApiError invalid_client, and what parsing the body throws.
 */
export function createFindClient(
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

/** @throws ApiError invalid_client, and what parsing the body throws. */
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

/** @throws ApiError invalid_request when body or header name another client than the credentials. */
export function requireSameClient({ app, body, headers }: RequestState): void {
  const { client_id: clientId } = (body ?? {}) as { client_id?: string };
  const named = [clientId, headers['service-app-id']].find((id) => id !== undefined && id !== app?.id);
  if (named !== undefined) {
    throw new ApiError('invalid_request', `the credentials are not those of the client \`${named}\``);
  }
}

/** The error of a client's body, by the codes of RFC 6749 section 5.2. */
export function clientFault({ body }: RequestState, fault: ApiError): ApiError {
  const { grant_type: grantType } = (body ?? {}) as { grant_type?: unknown };
  const issues = (fault.data?.issues ?? []) as readonly { readonly pointer: string }[];
  if (typeof grantType !== 'string' || !issues.some(({ pointer }) => pointer === '/grant_type')) return fault;
  const message = `unsupported grant type \`${grantType.slice(0, 100)}\``;
  return new ApiError('unsupported_grant_type', message, { data: { issues } });
}

/**
 * RFC 6749 §2.3.1: OAuth clients form-encode both halves before they apply RFC 7617. Many clients do not, so unencoded
 * halves are accepted too.
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
