import { timingSafeEqual } from 'node:crypto';
import { BlockList, isIP } from 'node:net';
import { ApiError } from '../errors.ts';
import type { Answer, RequestState } from './request-state.ts';
import type { Operation } from './route-index.ts';

type Match = (request: Pick<RequestState, 'method' | 'path'>) => RequestState['route'];

/** The security of the operations that web pages may call: all that do not need the app secret. */
const openToPages: ReadonlySet<Operation['security']> = new Set(['none', 'app-or-origin', 'app-or-user']);

// CHOICE: browsers may cache the response to a preflight for ten minutes.
const PREFLIGHT_SECONDS = '600';

/**
 * Returns the response to a browser's preflight for an operation that web pages may call; undefined for any other
 * request. A preflight names no app, so every origin is accepted. The response to the request itself names only an
 * origin that the app allows.
 */
export function answerPreflight(
  { method, path, headers }: Pick<RequestState, 'method' | 'path' | 'headers'>,
  match: Match,
): Answer | undefined {
  const { origin } = headers;
  const wanted = headers['access-control-request-method'];
  if (method !== 'OPTIONS' || origin === undefined || wanted === undefined) return undefined;
  const security = match({ method: wanted, path })?.operation.security;
  if (security === undefined || !openToPages.has(security)) return undefined;
  const names = headers['access-control-request-headers'];
  return {
    status: 204,
    headers: {
      'access-control-allow-origin': origin,
      'access-control-allow-methods': wanted,
      ...(names === undefined ? {} : { 'access-control-allow-headers': names }),
      'access-control-max-age': PREFLIGHT_SECONDS,
      vary: 'origin, access-control-request-method, access-control-request-headers',
    },
  };
}

/** Lets the web page that sent the request read the response. */
export function allowPage({ response }: Pick<RequestState, 'response'>, origin: string): void {
  response.setHeader('access-control-allow-origin', origin);
  response.setHeader('access-control-expose-headers', 'x-request-id, retry-after, x-ratelimit-reset');
  response.setHeader('vary', 'origin');
}

/** The host and the URLs under which clients reach a server. */
interface OwnNames {
  readonly host: string;
  readonly publicUrls: readonly string[];
}

/** The sender of a request, as far as its connection and headers show. */
export type Caller = Pick<RequestState, 'headers' | 'remoteAddress'>;

/**
 * With this challenge, a browser prompts for a user name and a password, and sends them with every later request to
 * this server.
 */
const challenge = { 'www-authenticate': 'Basic realm="control token", charset="UTF-8"' };

/**
 * Returns a check that accepts programs on this machine without credentials, and any caller with the control token. The
 * token is sent as a bearer token, or as the password of HTTP Basic, which browsers prompt for.
 *
 * CHOICE: web pages of other sites get 404, even with a token: they run in a browser on this machine, so they connect
 * from loopback as well. Their `Origin` header, or a foreign `Host` (DNS rebinding), reveals them. All other callers
 * get 404 if the server has no token, and 401 otherwise.
 */
export function requireLocalCaller(names: OwnNames, controlToken?: string): (caller: Caller) => void {
  const isOwn = isOwnOf(ownHostsOf(names));
  return (caller) => {
    const { host: named = '', authorization } = caller.headers;
    const isForeign = isForeignPage(caller.headers);
    if (!isForeign && controlToken !== undefined) {
      if (authorization !== undefined && isEqual(sentToken(authorization), controlToken)) return;
      if (!isLoopback(caller.remoteAddress)) {
        throw new ApiError(
          'missing_or_invalid_token',
          'expected the control token: `authorization: Bearer <token>`, or as the password of HTTP Basic; it is printed at the start (--control-token)',
          { headers: challenge },
        );
      }
    }
    if (!isLoopback(caller.remoteAddress) || !isOwn(`http://${named}`) || isForeign) {
      throw new ApiError('not_found');
    }
  };
}

/** Returns whether a web page of another site sent the request. */
export function isForeignPage({ host = '', origin }: Caller['headers']): boolean {
  return origin !== undefined && origin.replace(/^https?:\/\//, '') !== host;
}

function sentToken(authorization: string): string {
  const [scheme = '', value = ''] = authorization.split(' ', 2);
  if (scheme.toLowerCase() === 'bearer') return value;
  if (scheme.toLowerCase() !== 'basic') return '';
  const credentials = Buffer.from(value, 'base64').toString('utf8');
  return credentials.slice(credentials.indexOf(':') + 1);
}

function isEqual(sent: string, expected: string): boolean {
  const [left, right] = [Buffer.from(sent), Buffer.from(expected)];
  return left.length === right.length && timingSafeEqual(left, right);
}

/**
 * Returns a check that refuses requests from web pages of other sites. Browsers on this machine can reach a server on
 * loopback. `Origin`, or a foreign `Host` (DNS rebinding), reveals such pages. Pages on loopback are allowed, and so
 * are pages that call an operation for which the app's allowed origins replace a secret.
 *
 * The check throws `foreign_host`.
 */
export function requireOwnHost(names: OwnNames): (state: Pick<RequestState, 'headers' | 'route'>) => void {
  const isOwn = isOwnOf(ownHostsOf(names));
  return ({ headers: { host = '', origin, authorization }, route }) => {
    if (!isOwn(`http://${host}`)) {
      throw new ApiError(
        'foreign_host',
        `expected a host of this server, got \`${host}\`; --public-url adds one`,
      );
    }
    const isJudgedByApp = route?.operation.security === 'app-or-origin' && authorization === undefined;
    if (origin !== undefined && !isJudgedByApp && !isOwn(origin)) {
      throw new ApiError('foreign_host', `expected an origin on this machine, got \`${origin}\``);
    }
  };
}

function ownHostsOf({ host, publicUrls }: OwnNames): ReadonlySet<string> {
  const urls = [...publicUrls, `http://${isIP(host) === 6 ? `[${host}]` : host}`];
  const own = urls.filter((url) => URL.canParse(url)).map((url) => new URL(url).hostname);
  return new Set([...localHosts, ...own]);
}

/**
 * The maximum number of cached URLs. The same few URLs are checked for every request, and parsing a URL takes longer
 * than finding the operation.
 */
const MAX_OWN_URLS = 100;

/** Returns a function that tells whether a URL has one of these hosts. */
function isOwnOf(ownHosts: ReadonlySet<string>): (url: string) => boolean {
  const known = new Set<string>();
  return (url) => {
    if (known.has(url)) return true;
    const isOwn = URL.canParse(url) && ownHosts.has(new URL(url).hostname);
    if (isOwn && known.size < MAX_OWN_URLS) known.add(url);
    return isOwn;
  };
}

/** Returns whether only this machine can reach a server that listens on this host. */
export function isLoopbackHost(host: string): boolean {
  return host === 'localhost' || (isIP(host) !== 0 && isLoopback(host));
}

const localHosts = new Set(['localhost', '127.0.0.1', '[::1]']);

const isLocal = isOwnOf(localHosts);

/** Returns whether an origin is a web page on this machine, such as a page of a development server. */
export function isLocalOrigin(origin: string): boolean {
  return isLocal(origin);
}

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

function isLoopback(address: string): boolean {
  // A BlockList also accepts IPv4 addresses written as IPv6, `::ffff:127.0.0.1`.
  return loopback.check(address, address.includes(':') ? 'ipv6' : 'ipv4');
}
