import type { AnsweredRequest } from '../../ports/requests.ts';

/** A queue of byte strings. It is stored outside of the JavaScript heap. */
interface ByteQueue {
  add(bytes: Uint8Array): void;
  /**
   * Returns a buffer into which the caller can write up to `most` bytes, beginning at `offset()`. Returns undefined if
   * there is not enough contiguous memory.
   */
  room(most: number): Buffer | undefined;
  /** Returns the offset in the buffer of `room` at which writing begins. */
  offset(): number;
  /** Adds the bytes that the caller has written into the buffer of `room`. */
  keep(length: number): void;
  /** Returns the position at which the next bytes will be added. It increases with every addition. */
  end(): number;
  /** Returns a copy of bytes that were added at a position and have not been dropped. */
  read(position: number, length: number): Buffer;
  /** Drops the oldest bytes. */
  drop(length: number): void;
  /** Drops everything and frees the memory. */
  clear(): void;
}

const PIECE_BYTES = 262_144;

/** The maximum number of unused pieces of memory that are kept for reuse. */
const MAX_UNUSED = 4;

/**
 * Creates an empty queue. It allocates pieces of memory as it needs them, and reuses the pieces whose bytes were
 * dropped.
 */
export function createByteQueue(pieceBytes = PIECE_BYTES): ByteQueue {
  /** The memory from the position `firstPiece * pieceBytes` on. */
  let pieces: Buffer[] = [];
  let unused: Buffer[] = [];
  let firstPiece = 0;
  let [start, end] = [0, 0];

  /** Calls `copy` for each piece of memory that a range covers, with the covered part and its offset in the range. */
  const inPieces = (position: number, length: number, copy: (part: Buffer, at: number) => void): void => {
    for (let at = 0; at < length; ) {
      const offset = (position + at) % pieceBytes;
      const piece = pieces[(position + at - offset) / pieceBytes - firstPiece]!;
      const part = piece.subarray(offset, Math.min(pieceBytes, offset + length - at));
      copy(part, at);
      at += part.length;
    }
  };

  const takePieces = (until: number): void => {
    while ((firstPiece + pieces.length) * pieceBytes < until) {
      pieces.push(unused.pop() ?? Buffer.allocUnsafeSlow(pieceBytes));
    }
  };

  return {
    add(bytes) {
      const position = end;
      end += bytes.length;
      takePieces(end);
      inPieces(position, bytes.length, (part, at) => part.set(bytes.subarray(at, at + part.length)));
    },
    room(most) {
      const offset = end % pieceBytes;
      if (offset + most > pieceBytes) return undefined;
      takePieces(end + most);
      return pieces[(end - offset) / pieceBytes - firstPiece];
    },
    offset: () => end % pieceBytes,
    keep(length) {
      end += length;
    },
    end: () => end,
    read(position, length) {
      const copy = Buffer.allocUnsafe(length);
      inPieces(position, length, (part, at) => copy.set(part, at));
      return copy;
    },
    drop(length) {
      start += length;
      while ((firstPiece + 1) * pieceBytes <= start) {
        const piece = pieces.shift()!;
        if (unused.length < MAX_UNUSED) unused.push(piece);
        firstPiece += 1;
      }
    },
    clear() {
      [pieces, unused, firstPiece, start, end] = [[], [], 0, 0, 0];
    },
  };
}

/*
 * Packs a request into bytes: the ends of its parts and its times, then the parts: the known facts, the headers, the
 * text of the response, the body. The first two parts have one value per line, because a request line, header, id or
 * code cannot contain a line break (RFC 9112 section 2.2). Values that can contain one are JSON. All bytes of a
 * request are contiguous, because each write to another place in memory is a cache miss.
 *
 * HOT: each response packs a request (bench `recorder`). Stored as objects, the latest requests would take ten times
 * the memory. The garbage collector would move each of them twice, which takes longer than packing.
 */

/** Fields that only some requests have. They are stored as JSON. */
interface Rest extends Pick<Partial<AnsweredRequest>, 'effects' | 'why'> {
  readonly signers?: readonly string[] | undefined;
}

/** The ends of the parts, a flag for whether there is a response, and three times. */
const NUMBERS_BYTES = 40;
/** UTF-8 needs at most this many bytes per UTF-16 code unit. */
const MAX_BYTES = 3;
/** Memory for packing. Most requests fit into it. */
const scratch = Buffer.allocUnsafeSlow(65_536);

/**
 * Adds a request to a queue.
 *
 * @returns the number of bytes that it takes.
 */
export function packRequest(answered: AnsweredRequest, queue: ByteQueue): number {
  const { rawBody, responseText = '' } = answered;
  const head = headOf(answered);
  const headers = headersOf(answered);
  // The texts are encoded in one call, because each call into native code takes as long as writing the headers.
  const text = head + headers + responseText;
  const most = NUMBERS_BYTES + rawBody.length + MAX_BYTES * text.length;
  const room = queue.room(most);
  const bytes = room ?? (most <= scratch.length ? scratch : Buffer.allocUnsafeSlow(most));
  const start = room === undefined ? 0 : queue.offset();
  const headAt = start + NUMBERS_BYTES;
  const bodyAt = headAt + bytes.write(text, headAt);
  // If all characters are ASCII, each takes one byte, so lengths need not be computed.
  const bytesOf = bodyAt - headAt === text.length ? lengthOf : Buffer.byteLength;
  const headersAt = headAt + bytesOf(head);
  if (rawBody.length > 0) bytes.set(rawBody, bodyAt);
  const end = bodyAt + rawBody.length;
  bytes.writeUInt32LE(headersAt - start, start);
  bytes.writeUInt32LE(headersAt + bytesOf(headers) - start, start + 4);
  bytes.writeUInt32LE(bodyAt - start, start + 8);
  bytes.writeUInt32LE(answered.responseText === undefined ? 0 : 1, start + 12);
  bytes.writeDoubleLE(answered.receivedAtMs, start + 16);
  bytes.writeDoubleLE(answered.machineMs, start + 24);
  bytes.writeDoubleLE(answered.durationMs, start + 32);
  if (room === undefined) queue.add(bytes.subarray(0, end));
  else queue.keep(end - start);
  return end - start;
}

/** Unpacks a request. Parts are read on demand, because most readers search for one request among many. */
export function unpackRequest(bytes: Buffer): AnsweredRequest {
  const headEnd = bytes.readUInt32LE(0);
  const headersEnd = bytes.readUInt32LE(4);
  const responseEnd = bytes.readUInt32LE(8);
  const hasResponse = bytes.readUInt32LE(12) === 1;
  const [id, method, target, httpVersion, operation, appId, userId, code, signatures, status, path, rest] =
    bytes.toString('utf8', NUMBERS_BYTES, headEnd).split('\n') as string[];
  const { effects = [], signers, why } = JSON.parse(rest || '{}') as Rest;
  const headers = () => bytes.toString('utf8', headEnd, headersEnd).split('\n');
  return {
    receivedAtMs: bytes.readDoubleLE(16),
    machineMs: bytes.readDoubleLE(24),
    durationMs: bytes.readDoubleLE(32),
    ...{ id: id!, method: method!, target: target!, httpVersion: httpVersion! },
    operation: operation || undefined,
    pathParameters: path === '' ? undefined : JSON.parse(path!),
    appId: appId || undefined,
    userId: userId || undefined,
    signatures: Number(signatures),
    signers: signers && new Set(signers),
    effects,
    status: Number(status),
    code: code || undefined,
    why,
    get rawHeaders() {
      const [count, ...lines] = headers();
      return lines.slice(0, Number(count));
    },
    get responseHeaders() {
      const [count, ...lines] = headers();
      const found: [string, string][] = [];
      for (let at = Number(count); at < lines.length; at += 2) found.push([lines[at]!, lines[at + 1]!]);
      return [Object.fromEntries(found)];
    },
    get rawBody() {
      return bytes.subarray(responseEnd);
    },
    get responseText() {
      return hasResponse ? bytes.toString('utf8', headersEnd, responseEnd) : undefined;
    },
  };
}

function lengthOf(text: string): number {
  return text.length;
}

function headOf(answered: AnsweredRequest): string {
  const { id, method, target, httpVersion, operation = '', appId = '', userId = '', code = '' } = answered;
  const { signatures, status, pathParameters } = answered;
  const path = pathParameters === undefined ? '' : JSON.stringify(pathParameters);
  return `${id}\n${method}\n${target}\n${httpVersion}\n${operation}\n${appId}\n${userId}\n${code}\n${signatures}\n${status}\n${path}\n${restOf(answered)}`;
}

function restOf({ effects, signers, why }: AnsweredRequest): string {
  if (why === undefined && signers === undefined && !effects.some(hasEffect)) return '';
  return JSON.stringify({ effects, signers: signers && [...signers], why } satisfies Rest);
}

function hasEffect({ events, transactions, policies }: AnsweredRequest['effects'][number]): boolean {
  return events.length > 0 || transactions.length > 0 || policies.length > 0;
}

function headersOf({ rawHeaders, responseHeaders }: AnsweredRequest): string {
  const count = rawHeaders.length;
  let text = count === 0 ? '0' : `${count}\n${rawHeaders.join('\n')}`;
  for (const part of responseHeaders) {
    for (const name in part) text += `\n${name}\n${textOf(part[name])}`;
  }
  return text;
}

function textOf(value: unknown): string {
  return Array.isArray(value) ? value.join(', ') : String(value);
}
