import type { Writable } from 'node:stream';

/**
 * The messages between a server and its signer, as frames on a stream. A frame has these fields:
 *
 * length of everything after this field (4 bytes, big-endian) || version (1) || kind (1) || id (4) || operation (1) ||
 * number of byte strings (1) || for each byte string, its length (4) and its bytes || JSON in UTF-8 (the remaining
 * bytes; none for undefined)
 */

const VERSION = 1;

/**
 * The kinds of messages. A signer that is about to stop sends `leaving`. It still finishes the calls that it has
 * received, but the server must send it no new ones.
 */
export const frameKinds = { hello: 1, call: 2, result: 3, failure: 4, leaving: 5 } as const;
type FrameKind = (typeof frameKinds)[keyof typeof frameKinds];

/** The content of a message. Byte strings are separate from the JSON, so they need no encoding. */
export interface Message {
  readonly parts: readonly Uint8Array[];
  readonly json: unknown;
}

export interface Frame extends Message {
  readonly kind: FrameKind;
  /** The id of the call; 0 if the frame belongs to no call. */
  readonly id: number;
  /** The number of the called operation; 0 in frames that are not calls. */
  readonly operation: number;
}

/** Thrown when a stream is malformed. Nothing after the malformed frame can be read. */
export class FrameError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'FrameError';
  }
}

const HEAD_BYTES = 8;
const MAX_PARTS = 8;

/**
 * Large enough for a transaction in hex that fills a request body (1 MiB): the server sends it with the signed request,
 * which repeats it.
 */
export const MAX_FRAME_BYTES = 8 * 1024 * 1024;

/**
 * Encodes a message as a frame.
 *
 * @throws FrameError when the frame would be too long or has too many byte strings.
 */
export function encodeFrame({ kind, id, operation, parts, json }: Frame): Buffer {
  const text = json === undefined ? '' : JSON.stringify(json);
  const textBytes = Buffer.byteLength(text);
  const length = parts.reduce((sum, part) => sum + 4 + part.length, HEAD_BYTES + textBytes);
  if (length > MAX_FRAME_BYTES) throw tooLong(length);
  if (parts.length > MAX_PARTS) throw new FrameError(`expected at most ${MAX_PARTS} byte strings`);
  const bytes = Buffer.allocUnsafe(4 + length);
  let at = bytes.writeUInt32BE(length);
  at = bytes.writeUInt8(VERSION, at);
  at = bytes.writeUInt8(kind, at);
  at = bytes.writeUInt32BE(id, at);
  at = bytes.writeUInt8(operation, at);
  at = bytes.writeUInt8(parts.length, at);
  for (const part of parts) {
    at = bytes.writeUInt32BE(part.length, at);
    bytes.set(part, at);
    at += part.length;
  }
  bytes.write(text, at);
  return bytes;
}

/** A frame that was read from the stream. */
export interface ReceivedFrame extends Frame {
  /** An estimate of its memory, in bytes. */
  readonly weight: number;
}

interface FrameReader {
  /**
   * Adds the next bytes, and returns the frames that are now complete. Their byte strings share memory with the input
   * or with the reader's buffer.
   *
   * @throws FrameError at the first byte that cannot belong to a frame. The caller must then close the connection.
   */
  push(chunk: Uint8Array): ReceivedFrame[];
  /** The number of bytes of the incomplete frame. */
  readonly pending: number;
  readonly frames: number;
}

/** Returns a reader that splits a stream into frames. */
export function createFrameReader(): FrameReader {
  /**
   * The incomplete frame, in the first `pending` bytes.
   * NOTE: one growing buffer, because a list of one-byte chunks would take gigabytes.
   */
  let buffer = Buffer.alloc(0);
  let pending = 0;
  let count = 0;

  function keep(bytes: Buffer): void {
    if (pending + bytes.length > buffer.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(2 * buffer.length, pending + bytes.length));
      buffer.copy(larger, 0, 0, pending);
      buffer = larger;
    }
    bytes.copy(buffer, pending);
    pending += bytes.length;
  }

  return {
    get pending() {
      return pending;
    },
    get frames() {
      return count;
    },
    push(chunk) {
      let rest = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
      const frames: ReceivedFrame[] = [];
      while (pending > 0 && rest.length > 0) {
        const wanted = pending < 4 ? 4 : 4 + checkedLength(buffer.readUInt32BE());
        const missing = rest.subarray(0, wanted - pending);
        keep(missing);
        rest = rest.subarray(missing.length);
        if (pending < 4 || pending < 4 + checkedLength(buffer.readUInt32BE())) continue;
        frames.push(decodeFrame(buffer.subarray(4, pending)));
        buffer = Buffer.alloc(0);
        pending = 0;
      }
      while (rest.length >= 4) {
        const wanted = 4 + checkedLength(rest.readUInt32BE());
        if (rest.length < wanted) break;
        frames.push(decodeFrame(rest.subarray(4, wanted)));
        rest = rest.subarray(wanted);
      }
      if (rest.length > 0) keep(rest);
      count += frames.length;
      return frames;
    },
  };
}

function checkedLength(length: number): number {
  if (length > MAX_FRAME_BYTES) throw tooLong(length);
  if (length < HEAD_BYTES)
    throw new FrameError(`expected a frame of at least ${HEAD_BYTES} bytes, got ${length}`);
  return length;
}

function tooLong(length: number): FrameError {
  return new FrameError(`expected a frame of at most ${MAX_FRAME_BYTES} bytes, got ${length}`);
}

const kinds: readonly number[] = Object.values(frameKinds);

function decodeFrame(bytes: Buffer): ReceivedFrame {
  const [version, kind] = [bytes.readUInt8(0), bytes.readUInt8(1)];
  if (version !== VERSION)
    throw new FrameError(`expected version ${VERSION} of the protocol, got ${version}`);
  if (!kinds.includes(kind)) throw new FrameError(`expected a kind of frame, got ${kind}`);
  const count = bytes.readUInt8(7);
  if (count > MAX_PARTS) throw new FrameError(`expected at most ${MAX_PARTS} byte strings, got ${count}`);
  const parts: Buffer[] = [];
  let at = HEAD_BYTES;
  for (let part = 0; part < count; part += 1) {
    const from = at + 4;
    const to = from > bytes.length ? from : from + bytes.readUInt32BE(at);
    if (to > bytes.length) throw new FrameError('a byte string ends after its frame');
    parts.push(bytes.subarray(from, to));
    at = to;
  }
  const { json, values } = parse(bytes.subarray(at));
  return {
    kind: kind as FrameKind,
    id: bytes.readUInt32BE(2),
    operation: bytes.readUInt8(6),
    parts,
    json,
    weight: bytes.length + BYTES_OF_VALUE * values,
  };
}

/** The maximum depth of the JSON. A client's request body may be 128 levels deep, and the call adds a few levels. */
const MAX_DEPTH = 160;

/** The memory that V8 uses for an empty object. `[{},{},…]` takes twenty times its length once it is parsed. */
const BYTES_OF_VALUE = 56;

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Parses the JSON of a frame and counts its values.
 *
 * NOTE: the errors have no `cause`, because its message would quote the text.
 */
function parse(bytes: Buffer): { json: unknown; values: number } {
  if (bytes.length === 0) return { json: undefined, values: 0 };
  const values = countValues(bytes);
  try {
    return { json: JSON.parse(utf8.decode(bytes)), values };
  } catch {
    throw new FrameError('expected JSON in UTF-8 at the end of a frame');
  }
}

const [quote, backslash, comma, openBrace, closeBrace, openBracket, closeBracket] = [...'"\\,{}[]'].map(
  (character) => character.charCodeAt(0),
);

/**
 * Returns the number of values in a JSON text, including JSON texts inside its strings: brackets and commas in strings
 * count too. The number may be too high, never too low.
 *
 * @throws FrameError for JSON that is nested so deeply that recursive functions would overflow the stack.
 */
function countValues(bytes: Buffer): number {
  let values = 1;
  let depth = 0;
  let isText = false;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (byte === backslash && isText) at += 1;
    else if (byte === quote) isText = !isText;
    else if (byte === comma) values += 1;
    else if (byte === openBrace || byte === openBracket) {
      values += 1;
      if (!isText) depth += 1;
      if (depth > MAX_DEPTH) throw new FrameError(`expected JSON that is at most ${MAX_DEPTH} levels deep`);
    } else if (!isText && (byte === closeBrace || byte === closeBracket)) depth -= 1;
  }
  return values;
}

interface FrameWriter {
  add(frame: Buffer): void;
  /** The number of bytes that are buffered because the peer is not reading. */
  readonly unsent: number;
  /** Increases each time that the stream has passed a write to the operating system. */
  readonly taken: number;
}

/**
 * Returns a writer that combines the frames of one turn of the event loop into one write, because a system call takes
 * longer than a signature.
 */
export function createFrameWriter(stream: Writable): FrameWriter {
  let waiting: Buffer[] = [];
  let waitingBytes = 0;
  let taken = 0;
  function flush(): void {
    const [first] = waiting;
    const bytes = waiting.length === 1 && first !== undefined ? first : Buffer.concat(waiting);
    waiting = [];
    waitingBytes = 0;
    if (stream.destroyed) return;
    stream.write(bytes, () => {
      taken += 1;
    });
  }
  return {
    add(frame) {
      waitingBytes += frame.length;
      if (waiting.push(frame) === 1) setImmediate(flush);
    },
    get unsent() {
      return waitingBytes + stream.writableLength;
    },
    get taken() {
      return taken;
    },
  };
}
