import { BlockList } from 'node:net';
import { ApiError } from '../errors.ts';
import type { HttpExchange } from './http-exchange.ts';
import type { PipelineOptions } from './pipeline.ts';

/**
 * Admits programs on this machine without credentials.
 *
 * CHOICE: all other callers receive 404. Web pages of other sites also run on this machine; they are recognized by
 * `Origin`, or by a `Host` that is not ours (DNS rebinding).
 */
export function requireLocalCaller({
  host,
  publicUrls,
}: {
  readonly host: string;
  readonly publicUrls: readonly string[];
}): PipelineOptions['authenticate'] {
  const ownHosts = new Set([
    'localhost',
    '127.0.0.1',
    '[::1]',
    host,
    ...publicUrls.map((url) => new URL(url).hostname),
  ]);
  return (exchange: HttpExchange) => {
    const { host: named = '', origin } = exchange.headers;
    const isOwnHost = URL.canParse(`http://${named}`) && ownHosts.has(new URL(`http://${named}`).hostname);
    const isForeignPage = origin !== undefined && origin.replace(/^https?:\/\//, '') !== named;
    if (!isLoopback(exchange.remoteAddress) || !isOwnHost || isForeignPage) throw new ApiError('not_found');
  };
}

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

function isLoopback(address: string): boolean {
  // BlockList also accepts IPv4-mapped IPv6 addresses such as `::ffff:127.0.0.1`.
  return loopback.check(address, address.includes(':') ? 'ipv6' : 'ipv4');
}
