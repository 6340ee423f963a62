import type { IncomingMessage } from 'node:http';
import { BlockList, isIP } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { ApiError } from '../errors.ts';
import type { Entropy } from '../ports/runtime.ts';

/** The requests that may arrive without TLS. */
export interface TransportRules {
  /** Whether unencrypted requests from loopback are accepted. */
  readonly plainHttp: boolean;
  /** The addresses or subnets (`10.0.0.0/8`) of proxies whose `X-Forwarded-*` headers are trusted. */
  readonly trustedProxies: readonly string[];
  /**
   * Whether browsers must use HTTPS only (RFC 6797). Not for a server at `localhost`, which is also the host of other
   * projects.
   */
  readonly strictTransport?: boolean;
}

interface TransportGuard {
  /** Returns the scheme that the client used. Throws `https_required`. */
  scheme(request: IncomingMessage): 'https' | 'http';
  /**
   * Returns the client's address: the last one in `X-Forwarded-For` of a trusted proxy, or else the address of the
   * peer.
   */
  clientAddress(request: IncomingMessage): string;
}

export function createTransportGuard(rules: TransportRules): TransportGuard {
  const proxies = parseProxies(rules.trustedProxies);
  const comesFromProxy = (request: IncomingMessage): boolean =>
    proxies !== undefined && isListed(proxies, request.socket.remoteAddress);

  return {
    scheme(request) {
      if ((request.socket as TLSSocket).encrypted) return 'https';
      if (comesFromProxy(request) && lastItem(request.headers['x-forwarded-proto']) === 'https')
        return 'https';
      if (rules.plainHttp && isLoopback(request.socket.remoteAddress)) return 'http';
      throw new ApiError('https_required', undefined, { headers: { connection: 'close' } });
    },
    clientAddress(request) {
      const peer = request.socket.remoteAddress ?? '';
      if (!comesFromProxy(request)) return peer;
      return lastItem(request.headers['x-forwarded-for']) ?? peer;
    },
  };
}

function isLoopback(address: string | undefined): boolean {
  if (address === undefined) return false;
  return address === '::1' || address.startsWith('127.') || address.startsWith('::ffff:127.');
}

function parseProxies(entries: readonly string[]): BlockList | undefined {
  if (entries.length === 0) return undefined;
  const list = new BlockList();
  for (const entry of entries) {
    const [address = '', bits] = entry.split('/');
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
    if (bits === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(bits), family);
  }
  return list;
}

function isListed(list: BlockList, address: string | undefined): boolean {
  if (address === undefined) return false;
  const plain = address.startsWith('::ffff:') ? address.slice(7) : address;
  return list.check(plain, isIP(plain) === 6 ? 'ipv6' : 'ipv4');
}

/**
 * Returns the last item, which the nearest proxy has appended. The items before it come from the client and may be
 * forged.
 */
function lastItem(header: string | string[] | undefined): string | undefined {
  const text = Array.isArray(header) ? header.at(-1) : header;
  return text?.split(',').at(-1)?.trim();
}

const ID_BYTES = 16;
const IDS_PER_DRAW = 256;

/**
 * Returns a function that generates request ids: UUIDs of version 4 (RFC 9562 §5.4). Random bytes are drawn for many
 * ids together, because a system call takes a tenth of the time of a request.
 *
 * NOTE: needs its own entropy. With a shared seeded source, every request would change all later ids.
 */
export function requestIdsFrom(entropy: Entropy): () => string {
  let drawn = '';
  let offset = 0;
  return () => {
    if (offset === drawn.length) {
      drawn = Buffer.from(entropy.bytes(ID_BYTES * IDS_PER_DRAW)).toString('hex');
      offset = 0;
    }
    const hex = drawn.slice(offset, offset + 2 * ID_BYTES);
    offset += 2 * ID_BYTES;
    // The two highest bits of the 17th digit are the variant, 10.
    const variant = '89ab'[Number.parseInt(hex[16]!, 16) & 3];
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20)}`;
  };
}

/**
 * Refuses a request with more than one `authorization` or `host`. Node reads the first, but a proxy or a log in front
 * may read the last. They would then disagree about who the caller is.
 *
 * @throws ApiError invalid_data
 */
export function refuseDuplicateHeaders({ rawHeaders }: Pick<IncomingMessage, 'rawHeaders'>): void {
  let isHostSeen = false;
  let isAuthorizationSeen = false;
  // Names and values alternate.
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const { length } = rawHeaders[index]!;
    if (length !== 'host'.length && length !== 'authorization'.length) continue;
    const name = rawHeaders[index]!.toLowerCase();
    if (name === 'host') {
      if (isHostSeen) throw headerSentTwice(name);
      isHostSeen = true;
    } else if (name === 'authorization') {
      if (isAuthorizationSeen) throw headerSentTwice(name);
      isAuthorizationSeen = true;
    }
  }
}

function headerSentTwice(name: string): ApiError {
  const message = 'expected it once, got it more than once';
  return new ApiError('invalid_data', `\`${name}\`: ${message}`, {
    data: { issues: [{ in: 'header', pointer: `/${name}`, message }] },
  });
}
