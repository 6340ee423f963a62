import type { IncomingMessage } from 'node:http';
import { ApiError } from '../errors.ts';

/** CHOICE: 1 MiB, so that the documented 1 MB fits in both meanings of MB. */
export const MAX_BODY_BYTES = 1_048_576;

/**
 * A request with a larger body lets other requests run first, because parsing and validating it takes as long as a
 * whole request.
 */
export const LARGE_BODY_BYTES = 65_536;

/** The maximum number of bytes of request bodies in memory. */
export interface BodyBudget {
  readonly totalBytes: number;
  /** For all connections of one client address together. */
  readonly bytesPerAddress: number;
}

/** CHOICE: 128 bodies of the maximum size in total, 32 per client address. */
const defaultBodyBudget: BodyBudget = {
  totalBytes: 128 * MAX_BODY_BYTES,
  bytesPerAddress: 32 * MAX_BODY_BYTES,
};

/**
 * Reads the whole body, at most `maxBytes` (default: `MAX_BODY_BYTES`). Its bytes count against the budget until
 * `release` is called.
 *
 * @throws ApiError payload_too_large; invalid_request for thousands of tiny chunks; unavailable when the budget is used
 * up. RequestAbortedError when the client closes the connection first.
 */
export type ReadBody = (request: IncomingMessage, address: string, maxBytes?: number) => Promise<HeldBody>;

interface HeldBody {
  readonly bytes: Buffer;
  release(): void;
}

/** Thrown when the client has closed the connection before its response was sent. */
export class RequestAbortedError extends Error {
  constructor(message = 'the client closed the connection before the request was complete') {
    super(message);
    this.name = 'RequestAbortedError';
  }
}

// How much more a refused client may send. Some clients read the response only after they have sent their body.
const MAX_DISCARDED_BYTES = 16 * MAX_BODY_BYTES;
const FIRST_BYTES = 16_384;
// The maximum number of chunks of at most `SMALL_CHUNK_BYTES`, because each chunk costs memory and time. Ordinary
// clients send a few hundred.
const MAX_SMALL_CHUNKS = 4_096;
const SMALL_CHUNK_BYTES = 64;

const noBody: HeldBody = { bytes: Buffer.alloc(0), release: () => undefined };

/** Creates a reader whose bodies share one budget. */
export function createBodyReader(budget: BodyBudget = defaultBodyBudget): ReadBody {
  const held = holdWithin(budget);
  return async (request, address, maxBytes = MAX_BODY_BYTES) => {
    if (!hasBody(request)) return noBody;
    const declared = request.headers['content-length'];
    if (Number(declared) > maxBytes) throw tooLarge(maxBytes);
    const declaredBytes = declared === undefined ? undefined : Number(declared);
    return await collect(request, { declared: declaredBytes, maxBytes }, held(address));
  };
}

/**
 * Reads and discards the rest of a body that is not needed, up to a limit. A client that sends its whole body before it
 * reads would otherwise never see the response.
 */
export function discardBody(request: IncomingMessage): void {
  if (request.complete || !hasBody(request)) return;
  let size = 0;
  let chunks = 0;
  request.on('error', () => undefined);
  request.on('data', (chunk: Buffer) => {
    size += chunk.length;
    chunks += 1;
    if (size > MAX_DISCARDED_BYTES || areTooSmall(chunks, size)) request.socket.destroy();
  });
}

/** Larger bodies of refused requests are not recorded. */
const MAX_KEPT_BYTES = 65_536;
/** A client sends its body right after its headers, unless it waits for the response. */
const KEEP_WITHIN_MS = 100;

/**
 * Reads the small body of a request that was refused earlier, for the record of the request. Returns undefined if there
 * is none, if it is too large, or if it does not arrive within `KEEP_WITHIN_MS`.
 */
export function keepBody(request: IncomingMessage): Promise<Buffer | undefined> {
  const declared = Number(request.headers['content-length']);
  if (request.complete || !(declared > 0 && declared <= MAX_KEPT_BYTES)) return Promise.resolve(undefined);
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    const timer = setTimeout(() => end(undefined), KEEP_WITHIN_MS);
    const onData = (chunk: Buffer): void => void chunks.push(chunk);
    const onEnd = (): void => end(Buffer.concat(chunks));
    const onClose = (): void => end(undefined);
    function end(bytes: Buffer | undefined): void {
      clearTimeout(timer);
      request.off('data', onData).off('end', onEnd).off('close', onClose);
      resolve(bytes);
    }
    request.on('data', onData).on('end', onEnd).on('close', onClose);
  });
}

function areTooSmall(chunks: number, size: number): boolean {
  return chunks > MAX_SMALL_CHUNKS + size / SMALL_CHUNK_BYTES;
}

function hasBody({ headers }: IncomingMessage): boolean {
  const declared = headers['content-length'];
  return declared === undefined ? headers['transfer-encoding'] !== undefined : declared !== '0';
}

interface Share {
  /** Raises the share to `size` bytes; false if the budget does not allow it. */
  grow(size: number): boolean;
  release(): void;
}

function holdWithin({ totalBytes, bytesPerAddress }: BodyBudget): (address: string) => Share {
  let total = 0;
  const byAddress = new Map<string, number>();
  return (address) => {
    let size = 0;
    const change = (to: number): void => {
      total += to - size;
      const ofAddress = (byAddress.get(address) ?? 0) + to - size;
      if (ofAddress === 0) byAddress.delete(address);
      else byAddress.set(address, ofAddress);
      size = to;
    };
    return {
      grow(to) {
        const more = to - size;
        if (total + more > totalBytes) return false;
        if ((byAddress.get(address) ?? 0) + more > bytesPerAddress) return false;
        change(to);
        return true;
      },
      release: () => change(0),
    };
  };
}

/**
 * Copies the chunks into one buffer, which doubles when full. A list of chunks would cost about a hundred bytes of
 * memory for each chunk of a client that sends single bytes.
 */
function collect(
  request: IncomingMessage,
  { declared, maxBytes }: { readonly declared: number | undefined; readonly maxBytes: number },
  share: Share,
): Promise<HeldBody> {
  return new Promise((resolve, reject) => {
    let bytes: Buffer = noBody.bytes;
    let size = 0;
    let chunks = 0;
    const refuse = (error: Error): void => {
      request.off('data', onData);
      share.release();
      reject(error);
    };
    const onData = (chunk: Buffer): void => {
      const filled = size + chunk.length;
      chunks += 1;
      if (areTooSmall(chunks, filled)) {
        refuse(new ApiError('invalid_request', 'the body was sent in too many small chunks'));
        return;
      }
      if (filled > maxBytes) {
        refuse(tooLarge(maxBytes));
        return;
      }
      if (filled > bytes.length) {
        const capacity = capacityFor(filled, declared);
        if (!share.grow(capacity)) {
          refuse(budgetUsedUp());
          return;
        }
        const larger = Buffer.allocUnsafe(capacity);
        bytes.copy(larger, 0, 0, size);
        bytes = larger;
      }
      chunk.copy(bytes, size);
      size = filled;
    };
    request.on('data', onData);
    request.once('end', () => resolve({ bytes: bytes.subarray(0, size), release: share.release }));
    request.once('error', () => refuse(new RequestAbortedError()));
  });
}

/**
 * Returns the declared size if it is small enough to allocate in one piece; for larger or undeclared sizes, the next
 * power of two.
 */
function capacityFor(filled: number, declared: number | undefined): number {
  if (declared !== undefined && declared >= filled && declared <= FIRST_BYTES) return declared;
  let capacity = FIRST_BYTES;
  while (capacity < filled) capacity *= 2;
  return declared !== undefined && declared >= filled ? Math.min(capacity, declared) : capacity;
}

function tooLarge(maxBytes: number): ApiError {
  if (maxBytes === MAX_BODY_BYTES) return new ApiError('payload_too_large');
  const size = maxBytes < MAX_BODY_BYTES ? `${maxBytes} bytes` : `${maxBytes / MAX_BODY_BYTES} MB`;
  return new ApiError('payload_too_large', `request body is larger than ${size}`);
}

function budgetUsedUp(): ApiError {
  return new ApiError('unavailable', 'too many request bodies are being received at once', {
    headers: { 'retry-after': '1' },
  });
}

/** CHOICE: the time limit for a body that contains the credentials. Until it is read, the caller counts as admitted. */
const CLIENT_BODY_MS = 2000;

/** Waits for a body that contains the caller's credentials. If it does not arrive in time, closes the connection. */
export async function inTime<Body>(request: IncomingMessage, reading: Promise<Body>): Promise<Body> {
  // Destroy the socket, not the request: only then does the request emit the error that ends the read.
  const timer = setTimeout(() => request.socket.destroy(), CLIENT_BODY_MS);
  try {
    return await reading;
  } finally {
    clearTimeout(timer);
  }
}
