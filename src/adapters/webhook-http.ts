import { lookup as systemLookup } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import type { Dispatcher } from 'undici';
import type { WebhookOutcome, WebhookRequest, WebhookSender } from '../ports/webhooks.ts';
import { systemClock } from './clock.ts';
import { isPublicAddress } from './public-address.ts';

/** Where events may go. */
export interface WebhookGuard {
  /** Plain HTTP as well. */
  readonly allowsHttp: boolean;
  /** Judges the address of every connection, after the host was resolved. */
  allowsAddress(address: string): boolean;
}

/** Production's guard: HTTPS, to addresses on the public internet. */
export const publicHttpsOnly: WebhookGuard = { allowsHttp: false, allowsAddress: isPublicAddress };

/**
 * The sandbox's guard.
 *
 * CHOICE: every address, not only loopback: the endpoint under test may be another container, and no more than test
 * data leaves.
 */
export const anyAddress: WebhookGuard = { allowsHttp: true, allowsAddress: () => true };

/** How much of an answer's body is read, so that the connection can be used again; nothing of it is kept. */
const MAX_ANSWER_BYTES = 64 * 1024;
const KEEP_ALIVE_MS = 10_000;
/** Not shorter than an attempt, so that it is the attempt that ends first. */
const CONNECT_MS = 15_000;

interface SenderOptions {
  readonly guard: WebhookGuard;
  /** Resolves host names; the system's resolver when left out. */
  readonly lookup?: LookupFunction;
  /** PEM of an authority to trust beside those that Node knows. */
  readonly ca?: string;
  /** How long a connection may take to be made, TLS included; 15 s when left out. */
  readonly connectMs?: number;
}

/** Its code is `ADDRESS_NOT_ALLOWED`. */
class AddressNotAllowedError extends Error {
  readonly code = 'ADDRESS_NOT_ALLOWED';
}

/** Sends events over HTTP, on connections that are kept for the next event. */
export function createWebhookSender(options: SenderOptions): WebhookSender {
  let dispatcher: Promise<Dispatcher> | undefined;
  return {
    realNow: () => systemClock.now(),
    objectionTo: (url) => objectionTo(url, options.guard),
    async send(request) {
      const startedMs = performance.now();
      const outcome = (result: Omit<WebhookOutcome, 'durationMs'>): WebhookOutcome => ({
        ...result,
        durationMs: Math.round(performance.now() - startedMs),
      });
      // The guard may have become stricter since the endpoint was made.
      if (objectionTo(request.url, options.guard) !== undefined) {
        return outcome({ status: undefined, failure: 'address_not_allowed' });
      }
      const signal = AbortSignal.timeout(request.timeoutMs);
      try {
        dispatcher ??= makeDispatcher(options);
        const status = await unlessAborted(post(await dispatcher, request, signal), signal);
        return outcome({ status, failure: undefined });
      } catch (error) {
        return outcome({ status: undefined, failure: failureOf(error) });
      }
    },
    async close() {
      await (await dispatcher)?.destroy();
    },
  };
}

/** Resolves with the status once the head of the answer is there. */
async function post(
  dispatcher: Dispatcher,
  { url, headers, bodyText }: WebhookRequest,
  signal: AbortSignal,
): Promise<number> {
  const target = new URL(url);
  const { statusCode, body } = await dispatcher.request({
    origin: target.origin,
    path: target.pathname + target.search,
    method: 'POST',
    headers: { 'content-type': 'application/json', 'user-agent': 'custos-webhooks', ...headers },
    body: bodyText,
    signal,
  });
  // CHOICE: the status decides. What follows it is only read so that the connection can be used again, within the same
  // time; an endless or late body ends the connection.
  await body.dump({ limit: MAX_ANSWER_BYTES, signal }).catch(() => undefined);
  return statusCode;
}

/**
 * What `work` comes to, unless the signal is aborted first: undici ends a request with its signal, and not one that
 * still waits for its connection.
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

/** Loaded with the first event that is sent. */
async function makeDispatcher({
  guard,
  lookup,
  ca,
  connectMs = CONNECT_MS,
}: SenderOptions): Promise<Dispatcher> {
  // The names of a CommonJS package are known to Node, and not to a bundle.
  const { Agent, buildConnector } = (await import('undici')).default;
  const connect = buildConnector({
    lookup: guardedLookup(guard, lookup ?? (systemLookup as LookupFunction)),
    allowH2: false,
    // Or whatever is sent later would wait for a connection that nobody answers.
    timeout: connectMs,
    ...(ca !== undefined && { ca }),
  });
  return new Agent({
    keepAliveTimeout: KEEP_ALIVE_MS,
    // The attempt as a whole has a time limit.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect(options, callback) {
      const host = options.hostname.replace(/^\[|\]$/g, '');
      // `net` does not look up what is an address already.
      if (isIP(host) !== 0 && !guard.allowsAddress(host)) {
        callback(new AddressNotAllowedError(host), null);
        return;
      }
      connect(options, (...[error, socket]) => {
        if (error !== null) {
          callback(error, null);
        } else if (socket.remoteAddress === undefined || !guard.allowsAddress(socket.remoteAddress)) {
          // INVARIANT: never reached, unless `net` connects to something that it did not look up.
          socket.destroy();
          callback(new AddressNotAllowedError(socket.remoteAddress), null);
        } else {
          callback(null, socket);
        }
      });
    },
  });
}

/**
 * The addresses that the connection is then made to are those judged here: a name that resolves to another address a
 * moment later (DNS rebinding) gains nothing. One forbidden address among several refuses the host.
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

/** Names that never leave this machine or this network (RFC 6761, RFC 6762, RFC 9476, ICANN's `internal`). */
const localName = /^(.*\.)?(localhost|local|internal|home\.arpa|alt|invalid|onion)\.?$/;

function objectionTo(text: string, guard: WebhookGuard): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const schemes = guard.allowsHttp ? ['https:', 'http:'] : ['https:'];
  if (url === undefined || !schemes.includes(url.protocol)) {
    return `expected an absolute ${guard.allowsHttp ? 'HTTP or HTTPS' : 'HTTPS'} URL`;
  }
  if (url.username !== '' || url.password !== '') return 'expected a URL without user name and password';
  if (text.includes('#')) return 'expected a URL without a fragment';
  // Blanks and control characters, which URL would take away: what is stored is what is sent to.
  if (/[^\x21-\x7e]/.test(text)) return 'expected printable ASCII characters without blanks';
  const host = url.hostname.replace(/^\[|\]$/g, '');
  if (isIP(host) !== 0) {
    return guard.allowsAddress(host) ? undefined : 'expected a host on the public internet';
  }
  const isLocal = localName.test(host) || !host.replace(/\.$/, '').includes('.');
  // A guard that lets loopback through lets local names through.
  return isLocal && !guard.allowsAddress('127.0.0.1') ? 'expected a host on the public internet' : undefined;
}
