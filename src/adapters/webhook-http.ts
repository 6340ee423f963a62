import { lookup as systemLookup } from 'node:dns';
import { Resolver } from 'node:dns/promises';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import type { Dispatcher } from 'undici';
import { loadOnce } from '../engine/load-once.ts';
import { outgoingHeaders } from '../observability/spans.ts';
import type { WebhookOutcome, WebhookRequest, WebhookSender } from '../ports/webhooks.ts';
import { systemClock } from './runtime.ts';

// The IANA IPv4 Special-Purpose Address Registry plus the multicast and reserved blocks. No publicly reachable server
// has an address in them.
const closedIpv4: readonly [string, number][] = [
  ['0.0.0.0', 8], // this network (RFC 791)
  ['10.0.0.0', 8], // private use (RFC 1918)
  ['100.64.0.0', 10], // shared by carriers (RFC 6598)
  ['127.0.0.0', 8], // loopback (RFC 1122)
  ['169.254.0.0', 16], // link-local, cloud metadata (RFC 3927)
  ['172.16.0.0', 12], // private use (RFC 1918)
  ['192.0.0.0', 24], // protocol assignments (RFC 6890)
  ['192.0.2.0', 24], // documentation (RFC 5737)
  ['192.31.196.0', 24], // AS112 (RFC 7535)
  ['192.52.193.0', 24], // AMT (RFC 7450)
  ['192.88.99.0', 24], // 6to4 relays (RFC 7526)
  ['192.168.0.0', 16], // private use (RFC 1918)
  ['192.175.48.0', 24], // AS112 (RFC 7534)
  ['198.18.0.0', 15], // benchmarking (RFC 2544)
  ['198.51.100.0', 24], // documentation (RFC 5737)
  ['203.0.113.0', 24], // documentation (RFC 5737)
  ['224.0.0.0', 4], // multicast (RFC 5771)
  ['240.0.0.0', 4], // reserved and broadcast (RFC 1112, RFC 919)
];

// The entries of the IANA IPv6 Special-Purpose Address Registry inside the global unicast block 2000::/3. All addresses
// outside of that block are refused: ::1, IPv4-mapped ::ffff:0:0/96, NAT64 64:ff9b::/96 and 64:ff9b:1::/48, discard
// 100::/64, unique local fc00::/7, link-local fe80::/10, site-local fec0::/10, multicast ff00::/8.
const closedIpv6: readonly [string, number][] = [
  ['2001::', 23], // protocol assignments: Teredo, benchmarking, ORCHID, AMT, AS112 (RFC 2928)
  ['2001:db8::', 32], // documentation (RFC 3849)
  ['2002::', 16], // 6to4, which embeds an IPv4 address (RFC 3056)
  ['2620:4f:8000::', 48], // AS112 (RFC 7534)
  ['3fff::', 20], // documentation (RFC 9637)
];

const closed = new BlockList();
for (const [address, prefix] of closedIpv4) closed.addSubnet(address, prefix, 'ipv4');
for (const [address, prefix] of closedIpv6) closed.addSubnet(address, prefix, 'ipv6');

const globalUnicast = new BlockList();
globalUnicast.addSubnet('2000::', 3, 'ipv6');

/**
 * Returns whether an IP address can belong to a server on the public internet.
 *
 * CHOICE: an IPv6 address that embeds an IPv4 address (mapped, NAT64, 6to4, Teredo) is never public. Name servers
 * need not return such addresses, and the embedded address may be private.
 *
 * @param address in the format of `net`, with an optional zone, without brackets.
 */
export function isPublicAddress(address: string): boolean {
  const [bare = ''] = address.split('%');
  const family = isIP(bare);
  if (family === 4) return !closed.check(bare, 'ipv4');
  return family === 6 && globalUnicast.check(bare, 'ipv6') && !closed.check(bare, 'ipv6');
}

/** Restricts which endpoints may receive events. */
export interface WebhookGuard {
  readonly allowsHttp: boolean;
  /** Called with the resolved address of every connection. */
  allowsAddress(address: string): boolean;
}

/** The guard for production: HTTPS to public internet addresses only. */
export const publicHttpsOnly: WebhookGuard = { allowsHttp: false, allowsAddress: isPublicAddress };

/**
 * The guard for the sandbox.
 *
 * CHOICE: it allows every address, not only loopback, because the endpoint under test may run in another container,
 * and events contain only test data.
 */
export const anyAddress: WebhookGuard = { allowsHttp: true, allowsAddress: () => true };

/** The maximum size of a response body that is read to its end, so that the connection can be reused. */
const MAX_ANSWER_BYTES = 64 * 1024;
const KEEP_ALIVE_MS = 10_000;
/** CHOICE: while this many connections are open, no further connection is kept open for later requests. */
const KEPT_SOCKETS = 256;
/** This limit is at least as long as an attempt, so that the attempt's own limit applies first. */
const CONNECT_MS = 15_000;

interface SenderOptions {
  readonly guard: WebhookGuard;
  /** Resolves host names. By default, by the system's lookup. */
  readonly lookup?: LookupFunction;
  /** The PEM of an additional authority to trust. */
  readonly ca?: string;
  /** The time limit for connecting, including TLS. By default, 15 s. */
  readonly connectMs?: number;
}

/** Thrown when a webhook URL leads to an address to which webhooks must not be sent. */
class AddressNotAllowedError extends Error {
  readonly code = 'ADDRESS_NOT_ALLOWED';
}

/** Creates a sender of events that uses HTTP with keep-alive connections. */
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

/** Counts the open connections of a sender. */
interface Sockets {
  open: number;
}

/** Sends a request and resolves with the status of the response. */
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
    // Whether to close the connection after the response.
    reset: sockets.open >= KEPT_SOCKETS,
    signal,
  });
  // CHOICE: only the status matters. The body is read within the same time limit so that the connection can be
  // reused. A body that is too long or too slow closes the connection.
  await body.dump({ limit: MAX_ANSWER_BYTES, signal }).catch(() => undefined);
  return statusCode;
}

/**
 * Resolves like `work`, but rejects when the signal is aborted first. It is needed because undici does not abort a
 * request that still waits for a connection.
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

/** Creates the dispatcher. Imports undici on the first event. */
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
    // No separate limits, because the time limit of the attempt covers both phases.
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
          // INVARIANT: never reached, unless `net` connects to an address that `lookup` did not return.
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
 * Returns a lookup function that checks the addresses that the connection then uses, which prevents DNS rebinding. It
 * refuses the host when one of its addresses is not allowed.
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

/** Names that are reserved for the local machine or network (RFC 6761, RFC 6762, RFC 9476, ICANN's `internal`). */
const localName = /^(.*\.)?(localhost|local|internal|home\.arpa|alt|invalid|onion)\.?$/;

function urlFault(text: string, guard: WebhookGuard): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const schemes = guard.allowsHttp ? ['https:', 'http:'] : ['https:'];
  if (url === undefined || !schemes.includes(url.protocol)) {
    return `expected an absolute ${guard.allowsHttp ? 'HTTP or HTTPS' : 'HTTPS'} URL`;
  }
  if (url.username !== '' || url.password !== '') return 'expected a URL without user name and password';
  if (text.includes('#')) return 'expected a URL without a fragment';
  // `URL` strips blanks and control characters, but the stored URL must be exactly the URL that is called.
  if (/[^\x21-\x7e]/.test(text)) return 'expected printable ASCII characters without blanks';
  const host = url.hostname.replace(/^\[|\]$/g, '');
  if (isIP(host) !== 0) {
    return guard.allowsAddress(host) ? undefined : 'expected a host on the public internet';
  }
  const isLocal = localName.test(host) || !host.replace(/\.$/, '').includes('.');
  // A guard that allows loopback also allows local names.
  return isLocal && !guard.allowsAddress('127.0.0.1') ? 'expected a host on the public internet' : undefined;
}

/** A name server without a response is queried twice, the second time with a longer timeout. */
const TIMEOUT_MS = 2_500;
const TRIES = 2;

/**
 * Resolves host names with direct DNS queries. The system's lookup blocks one of Node's four threads until it has a
 * response. A few names with unresponsive servers would therefore delay all other lookups and everything else that
 * needs a thread.
 *
 * CHOICE: it ignores the hosts file and search domains, because only public names are resolved.
 *
 * @param servers addresses with an optional port. By default, the system's servers.
 * @returns a lookup function for `net` that returns all addresses, IPv4 first.
 */
export function nameServerLookup(servers?: readonly string[]): LookupFunction {
  const resolver = new Resolver({ timeout: TIMEOUT_MS, tries: TRIES });
  if (servers !== undefined) resolver.setServers(servers);
  return (hostname, _options, callback) => {
    const queries = [resolver.resolve4(hostname), resolver.resolve6(hostname)];
    void Promise.allSettled(queries).then((answers) => {
      const found = answers.flatMap((answer, index) =>
        answer.status === 'fulfilled'
          ? answer.value.map((address) => ({ address, family: index === 0 ? 4 : 6 }))
          : [],
      );
      const [failed] = answers.filter((answer) => answer.status === 'rejected');
      callback(found.length === 0 && failed !== undefined ? failed.reason : null, found);
    });
  };
}
