import { BlockList, isIP } from 'node:net';
import { ApiError } from '../../errors.ts';
import type { HttpExchange } from '../http-exchange.ts';

/** The names under which a server is reached. */
interface OwnNames {
  readonly host: string;
  readonly publicUrls: readonly string[];
}

/** Who sent a request, as far as its connection and headers show. */
export type Caller = Pick<HttpExchange, 'headers' | 'remoteAddress'>;

/**
 * Accepts programs on this machine, without credentials.
 *
 * CHOICE: other callers get 404. Web pages of other sites run on this machine as well; `Origin`, or a `Host` that is not
 * this server's (DNS rebinding), reveals them.
 */
export function requireLocalCaller(names: OwnNames): (caller: Caller) => void {
  const isOwn = isOwnOf(ownHostsOf(names));
  return (caller) => {
    const { host: named = '', origin } = caller.headers;
    const isForeignPage = origin !== undefined && origin.replace(/^https?:\/\//, '') !== named;
    if (!isLoopback(caller.remoteAddress) || !isOwn(`http://${named}`) || isForeignPage) {
      throw new ApiError('not_found');
    }
  };
}

/**
 * Refuses requests that web pages of other sites have sent to a server on loopback, where a browser on this machine
 * reaches it: by `Origin`, and by a `Host` that is not this server's (DNS rebinding). Pages on loopback are allowed, and
 * pages of an app where its allowed origins take the place of a secret.
 *
 * @throws ApiError foreign_host.
 */
export function requireOwnHost(names: OwnNames): (exchange: Pick<HttpExchange, 'headers' | 'route'>) => void {
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

/** The same few URLs are asked about with every request, and parsing one takes longer than finding its operation. */
const MAX_OWN_URLS = 100;

/** Whether the host of a URL is one of these. */
function isOwnOf(ownHosts: ReadonlySet<string>): (url: string) => boolean {
  const known = new Set<string>();
  return (url) => {
    if (known.has(url)) return true;
    const isOwn = URL.canParse(url) && ownHosts.has(new URL(url).hostname);
    if (isOwn && known.size < MAX_OWN_URLS) known.add(url);
    return isOwn;
  };
}

/** Whether a server that listens on this host can be reached from this machine alone. */
export function isLoopbackHost(host: string): boolean {
  return host === 'localhost' || (isIP(host) !== 0 && isLoopback(host));
}

const localHosts = new Set(['localhost', '127.0.0.1', '[::1]']);

const isLocal = isOwnOf(localHosts);

/** Whether an origin is a web page that this machine serves, such as that of a development server. */
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
