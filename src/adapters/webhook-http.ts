import { lookup as systemLookup } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import type { Dispatcher } from 'undici';
import { loadOnce } from '../load-once.ts';
import type { WebhookOutcome, WebhookRequest, WebhookSender } from '../ports/webhooks.ts';
import { outgoingHeaders } from '../spans.ts';
import { systemClock } from './clock.ts';
import { isPublicAddress } from './public-address.ts';

/** Restricts the endpoints that receive events. */
export interface WebhookGuard {
  /** Whether plain HTTP is allowed. */
  readonly allowsHttp: boolean;
  /** Called with the resolved address of every connection. */
  allowsAddress(address: string): boolean;
}

/** The guard for production: HTTPS to public internet addresses only. */
export const publicHttpsOnly: WebhookGuard = { allowsHttp: false, allowsAddress: isPublicAddress };

/**
 * The guard for the sandbox.
 *
 * CHOICE: allows every address, not only loopback: the endpoint under test may run in another container, and events
 * contain only test data.
 */
export const anyAddress: WebhookGuard = { allowsHttp: true, allowsAddress: () => true };

/** Up to this size, a response body is drained so that the connection can be reused. */
const MAX_ANSWER_BYTES = 64 * 1024;
const KEEP_ALIVE_MS = 10_000;
/** CHOICE: while so many connections are open, no further ones are kept for later requests. */
const KEPT_SOCKETS = 256;
/** At least as long as an attempt, so that the attempt's own limit applies first. */
const CONNECT_MS = 15_000;

interface SenderOptions {
  readonly guard: WebhookGuard;
  /** Resolves host names; the system's lookup by default. */
  readonly lookup?: LookupFunction;
  /** PEM of an additional authority to trust. */
  readonly ca?: string;
  /** Time limit for connecting, including TLS; 15 s by default. */
  readonly connectMs?: number;
}

class AddressNotAllowedError extends Error {
  readonly code = 'ADDRESS_NOT_ALLOWED';
}

/** Sends events over HTTP with keep-alive connections. */
export function createWebhookSender(options: SenderOptions): WebhookSender {
  const sockets: Sockets = { open: 0 };
  const dispatcher = loadOnce(() => makeDispatcher(options, sockets));
  return {
    systemNow: () => systemClock.now(),
    urlFault: (url) => urlFault(url, options.guard),
    async send(request) {
      const startedMs = performance.now();
      const outcome = (result: Omit<WebhookOutcome, 'durationMs'>): WebhookOutcome => ({
        ...result,
        durationMs: Math.round(performance.now() - startedMs),
      });
      // The guard may have become stricter since the endpoint was created.
      if (urlFault(request.url, options.guard) !== undefined) {
        return outcome({ status: undefined, failure: 'address_not_allowed' });
      }
      const signal = AbortSignal.timeout(request.timeoutMs);
      try {
        const status = await unlessAborted(post(await dispatcher(), request, { signal, sockets }), signal);
        return outcome({ status, failure: undefined });
      } catch (error) {
        return outcome({ status: undefined, failure: failureOf(error) });
      }
    },
    async close() {
      await (await dispatcher.begun())?.destroy();
    },
  };
}

/** The connections of a sender. */
interface Sockets {
  open: number;
}

/** Resolves with the status of the response. */
async function post(
  dispatcher: Dispatcher,
  { url, headers, bodyText }: WebhookRequest,
  { signal, sockets }: { readonly signal: AbortSignal; readonly sockets: Sockets },
): Promise<number> {
  const target = new URL(url);
  const { statusCode, body } = await dispatcher.request({
    origin: target.origin,
    path: target.pathname + target.search,
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'user-agent': 'custos-webhooks',
      ...outgoingHeaders(),
      ...headers,
    },
    body: bodyText,
    // The connection closes after the response.
    reset: sockets.open >= KEPT_SOCKETS,
    signal,
  });
  // CHOICE: only the status counts. The body is drained within the same time limit so that the connection can be
  // reused; a body that is too long or too slow closes the connection.
  await body.dump({ limit: MAX_ANSWER_BYTES, signal }).catch(() => undefined);
  return statusCode;
}

/**
 * Resolves like `work`, but rejects when the signal is aborted first: undici does not abort a request that is still
 * waiting for a connection.
 */
async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const end = Promise.withResolvers<never>();
  const abort = (): void => end.reject(signal.reason);
  signal.addEventListener('abort', abort);
  try {
    return await Promise.race([work, end.promise]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/** Imports undici on the first event. */
async function makeDispatcher(
  { guard, lookup, ca, connectMs = CONNECT_MS }: SenderOptions,
  sockets: Sockets,
): Promise<Dispatcher> {
  // The default export works in Node and in the bundle; named exports of a CommonJS package do not work in the bundle.
  const { Agent, buildConnector } = (await import('undici')).default;
  const connect = buildConnector({
    lookup: guardedLookup(guard, lookup ?? (systemLookup as LookupFunction)),
    allowH2: false,
    // Without this limit, later requests would wait for a connection that is never established.
    timeout: connectMs,
    ...(ca !== undefined && { ca }),
  });
  return new Agent({
    keepAliveTimeout: KEEP_ALIVE_MS,
    // The time limit of the attempt covers both.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect(options, callback) {
      const host = options.hostname.replace(/^\[|\]$/g, '');
      // `net` does not call `lookup` for an IP address.
      if (isIP(host) !== 0 && !guard.allowsAddress(host)) {
        callback(new AddressNotAllowedError(host), null);
        return;
      }
      connect(options, (...[error, socket]) => {
        if (error !== null) {
          callback(error, null);
        } else if (socket.remoteAddress === undefined || !guard.allowsAddress(socket.remoteAddress)) {
          // INVARIANT: not reached unless `net` connects to an address that `lookup` did not return.
          socket.destroy();
          callback(new AddressNotAllowedError(socket.remoteAddress), null);
        } else {
          sockets.open += 1;
          socket.once('close', () => {
            sockets.open -= 1;
          });
          callback(null, socket);
        }
      });
    },
  });
}

/**
 * Checks the addresses that the connection then uses, which prevents DNS rebinding. Refuses the host when one of its
 * addresses is not allowed.
 */
function guardedLookup(guard: WebhookGuard, lookup: LookupFunction): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, found) => {
      if (error !== null) {
        callback(error, []);
        return;
      }
      const addresses = Array.isArray(found) ? found : [];
      const [first] = addresses;
      if (first === undefined || !addresses.every(({ address }) => guard.allowsAddress(address))) {
        callback(new AddressNotAllowedError(hostname), []);
      } else if (options.all === true) {
        callback(null, addresses);
      } else {
        callback(null, first.address, first.family);
      }
    });
  };
}

function failureOf(error: unknown): NonNullable<WebhookOutcome['failure']> {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === 'ADDRESS_NOT_ALLOWED') return 'address_not_allowed';
    if (cause.name === 'TimeoutError' || code === 'UND_ERR_CONNECT_TIMEOUT') return 'timeout';
    if (cause instanceof AggregateError) {
      const known = cause.errors.map(failureOf).find((failure) => failure !== 'connection_failed');
      if (known !== undefined) return known;
    }
  }
  return 'connection_failed';
}

/** Names reserved for the local machine or network (RFC 6761, RFC 6762, RFC 9476, ICANN's `internal`). */
const localName = /^(.*\.)?(localhost|local|internal|home\.arpa|alt|invalid|onion)\.?$/;

function urlFault(text: string, guard: WebhookGuard): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const schemes = guard.allowsHttp ? ['https:', 'http:'] : ['https:'];
  if (url === undefined || !schemes.includes(url.protocol)) {
    return `expected an absolute ${guard.allowsHttp ? 'HTTP or HTTPS' : 'HTTPS'} URL`;
  }
  if (url.username !== '' || url.password !== '') return 'expected a URL without user name and password';
  if (text.includes('#')) return 'expected a URL without a fragment';
  // `URL` strips blanks and control characters; the stored URL must be exactly the one that is called.
  if (/[^\x21-\x7e]/.test(text)) return 'expected printable ASCII characters without blanks';
  const host = url.hostname.replace(/^\[|\]$/g, '');
  if (isIP(host) !== 0) {
    return guard.allowsAddress(host) ? undefined : 'expected a host on the public internet';
  }
  const isLocal = localName.test(host) || !host.replace(/\.$/, '').includes('.');
  // A guard that allows loopback also allows local names.
  return isLocal && !guard.allowsAddress('127.0.0.1') ? 'expected a host on the public internet' : undefined;
}
