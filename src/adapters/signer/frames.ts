/**
 * Messages between a server and its signer, as frames on a stream.
 *
 * length (4 bytes, big-endian, of all that follows) || version (1) || kind (1) || id (4) || operation (1)
 * || number of byte strings (1) || for each, its length (4) and its bytes || JSON (UTF-8, the rest; empty = undefined)
 */

const VERSION = 1;

export const frameKinds = { hello: 1, call: 2, result: 3, failure: 4 } as const;
type FrameKind = (typeof frameKinds)[keyof typeof frameKinds];

/** The content of a message. Bytes are apart from the JSON, so that they need no encoding. */
export interface Message {
  readonly parts: readonly Uint8Array[];
  readonly json: unknown;
}

export interface Frame extends Message {
  readonly kind: FrameKind;
  /** Of the call; 0 in a `hello`. */
  readonly id: number;
  /** Of the call; 0 in other frames. */
  readonly operation: number;
}

/** The stream is not what it should be. Nothing that follows can be read. */
export class FrameError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'FrameError';
  }
}

const HEAD_BYTES = 8;
const MAX_PARTS = 8;

/** A signed transaction is twice the size of a body, in hex. */
export const MAX_FRAME_BYTES = 8 * 1024 * 1024;

/** Throws FrameError when the frame would be too long. */
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

/**
 * Cuts a stream into frames. `push` takes the next bytes and returns the frames that they complete, whose byte strings
 * are views.
 *
 * Throws FrameError at the first byte that cannot belong to a frame; the caller then ends the connection.
 */
export function createFrameReader(): { push(chunk: Uint8Array): Frame[] } {
  let pending: Buffer[] = [];
  let pendingBytes = 0;
  /** Bytes of the first frame in `pending`, its length included; undefined while its length is not complete. */
  let wanted: number | undefined;

  function join(): Buffer {
    const [first] = pending;
    return pending.length === 1 && first !== undefined ? first : Buffer.concat(pending);
  }

  return {
    push(chunk) {
      pending.push(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength));
      pendingBytes += chunk.length;
      // A long frame arrives in many chunks; they are joined once.
      if (pendingBytes < (wanted ?? 4)) return [];
      let rest = join();
      const frames: Frame[] = [];
      for (;;) {
        wanted = rest.length < 4 ? undefined : 4 + checkedLength(rest.readUInt32BE());
        if (wanted === undefined || rest.length < wanted) break;
        frames.push(decodeFrame(rest.subarray(4, wanted)));
        rest = rest.subarray(wanted);
      }
      pending = rest.length === 0 ? [] : [rest];
      pendingBytes = rest.length;
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

function decodeFrame(bytes: Buffer): Frame {
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
  return {
    kind: kind as FrameKind,
    id: bytes.readUInt32BE(2),
    operation: bytes.readUInt8(6),
    parts,
    json: at === bytes.length ? undefined : parse(bytes.toString('utf8', at)),
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // NOTE: without the cause, which quotes the text.
    throw new FrameError('expected JSON at the end of a frame');
  }
}
