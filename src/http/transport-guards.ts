import type { IncomingMessage } from 'node:http';
import { BlockList, isIP } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { ApiError } from '../errors.ts';

/** Who may speak to the server without TLS of its own. */
export interface TransportRules {
  /** Unencrypted requests from loopback are accepted. */
  readonly plainHttp: boolean;
  /** Addresses or subnets (`10.0.0.0/8`) whose `X-Forwarded-*` headers are believed. */
  readonly trustedProxies: readonly string[];
}

export interface TransportGuard {
  /** `https` or `http`, as the client sees it. Throws `https_required`. */
  scheme(request: IncomingMessage): 'https' | 'http';
  /** The client's address: the last one that a trusted proxy names, else the peer's. */
  clientAddress(request: IncomingMessage): string;
}

/** CHOICE: 1 MB is 1,000,000 bytes rounded up to the binary megabyte, so that both readings fit. */
export const MAX_BODY_BYTES = 1_048_576;

// A client that is still sending when it is refused gets this much more read, so that it can read the refusal.
const MAX_DISCARDED_BYTES = 16 * MAX_BODY_BYTES;

const noBody = Buffer.alloc(0);

/** Judges the transport of requests by `rules`. */
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

/**
 * Reads the whole body, at most `MAX_BODY_BYTES`. Throws `payload_too_large`; the rest of such a body is read and
 * dropped, within bounds, for a client that sends everything before it reads anything.
 */
export function readBody(request: IncomingMessage): Promise<Buffer> | Buffer {
  const declared = request.headers['content-length'];
  if (declared === undefined && request.headers['transfer-encoding'] === undefined) return noBody;
  if (declared === '0') return noBody;
  if (Number(declared) > MAX_BODY_BYTES) {
    discardRest(request);
    throw new ApiError('payload_too_large');
  }
  return collect(request);
}

/** The client went away before its request was whole; nobody is left to answer. */
export class RequestAbortedError extends Error {
  constructor() {
    super('the client closed the connection before the request was complete');
    this.name = 'RequestAbortedError';
  }
}

function collect(request: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const onData = (chunk: Buffer): void => {
      size += chunk.length;
      if (size <= MAX_BODY_BYTES) {
        chunks.push(chunk);
        return;
      }
      request.off('data', onData);
      discardRest(request);
      reject(new ApiError('payload_too_large'));
    };
    request.on('data', onData);
    request.once('end', () => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, size)));
    request.once('error', () => reject(new RequestAbortedError()));
  });
}

function discardRest(request: IncomingMessage): void {
  let size = 0;
  request.on('error', () => undefined);
  request.on('data', (chunk: Buffer) => {
    size += chunk.length;
    if (size > MAX_DISCARDED_BYTES) request.socket.destroy();
  });
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

/** The item that the nearest proxy appended: those before it came from outside and may be forged. */
function lastItem(header: string | string[] | undefined): string | undefined {
  const text = Array.isArray(header) ? header.at(-1) : header;
  return text?.split(',').at(-1)?.trim();
}
