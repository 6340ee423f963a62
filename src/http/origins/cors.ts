import type { Answer, HttpExchange } from '../http-exchange.ts';
import type { Operation } from '../operation.ts';

type Match = (request: Pick<HttpExchange, 'method' | 'path'>) => HttpExchange['route'];

/** Operations that web pages may call: everything that does not need the app secret. */
const openToPages: ReadonlySet<Operation['security']> = new Set(['none', 'app-or-origin', 'app-or-user']);

// CHOICE: browsers ask again after ten minutes.
const PREFLIGHT_SECONDS = '600';

/**
 * The response to a browser's preflight of an operation that web pages may call; undefined for any other request.
 *
 * A preflight names no app, so it accepts every origin: the response to the request itself names only the origins that
 * the app allows.
 */
export function answerPreflight(
  { method, path, headers }: Pick<HttpExchange, 'method' | 'path' | 'headers'>,
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

/** Lets the page that sent the request read the response. */
export function allowPage({ response }: Pick<HttpExchange, 'response'>, origin: string): void {
  response.setHeader('access-control-allow-origin', origin);
  response.setHeader('access-control-expose-headers', 'x-request-id, retry-after, x-ratelimit-reset');
  response.setHeader('vary', 'origin');
}
