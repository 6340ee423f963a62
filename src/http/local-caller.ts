import { BlockList } from 'node:net';
import { ApiError } from '../errors.ts';
import type { HttpExchange } from './http-exchange.ts';
import type { PipelineOptions } from './pipeline.ts';

/**
 * Lets programs of this machine in, without credentials.
 *
 * CHOICE: for anybody else there is nothing (404). A page of another site that a person has open runs on this machine
 * too; it betrays itself by `Origin`, or by a `Host` that is none of ours (DNS rebinding).
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
  // A BlockList also takes IPv4 addresses written as IPv6, `::ffff:127.0.0.1`.
  return loopback.check(address, address.includes(':') ? 'ipv6' : 'ipv4');
}
