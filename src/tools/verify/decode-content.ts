import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate, inflateRaw, type ZlibOptions, zstdDecompress } from 'node:zlib';

type Decode = (bytes: Buffer, options: ZlibOptions) => Promise<Buffer>;

const decoders: Readonly<Record<string, Decode>> = {
  gzip: promisify(gunzip) as Decode,
  'x-gzip': promisify(gunzip) as Decode,
  br: promisify(brotliDecompress) as Decode,
  zstd: promisify(zstdDecompress) as Decode,
  // According to RFC 9110 §8.4.1.2, some servers send the data without the zlib format around it.
  deflate: (bytes, options) =>
    isZlib(bytes) ? promisify(inflate)(bytes, options) : promisify(inflateRaw)(bytes, options),
};

/**
 * Whether the bytes are in the zlib format. According to RFC 1950 §2.2, the method is 8, and the first two bytes are
 * a multiple of 31.
 */
function isZlib(bytes: Buffer): boolean {
  return bytes.length >= 2 && (bytes[0]! & 0x0f) === 8 && bytes.readUInt16BE(0) % 31 === 0;
}

/**
 * CHOICE: the maximum is three codings, which is more than servers use. Each coding may multiply the amount of data
 * to decode.
 */
const MAX_CODINGS = 3;

export interface DecodedContent {
  /** The decoded body, or the received body if it could not be decoded. */
  readonly body: Buffer;
  /** The reason why it could not be decoded. */
  readonly fault: string | undefined;
}

/**
 * Decodes the `Content-Encoding` of a message (RFC 9110 §8.4).
 *
 * @param most the maximum number of bytes after each step, because a few bytes can decode to gigabytes.
 */
export async function decodeContent(
  received: Buffer,
  contentEncoding: string | undefined,
  most: number,
): Promise<DecodedContent> {
  const codings = (contentEncoding ?? '')
    .toLowerCase()
    .split(',')
    .map((each) => each.trim())
    .filter((each) => each !== '' && each !== 'identity');
  if (received.length === 0 || codings.length === 0) return { body: received, fault: undefined };
  const refuse = (fault: string): DecodedContent => ({ body: received, fault });
  if (codings.length > MAX_CODINGS) {
    return refuse(`content-encoding: expected at most ${MAX_CODINGS} codings, got ${codings.length}`);
  }
  let body = received;
  // The header lists the codings in the order in which they were applied.
  for (const coding of codings.reverse()) {
    const decode = Object.hasOwn(decoders, coding) ? decoders[coding] : undefined;
    if (decode === undefined) {
      const known = Object.keys(decoders).join(', ');
      return refuse(`content-encoding: expected one of ${known}, got \`${coding.slice(0, 100)}\``);
    }
    try {
      body = await decode(body, { maxOutputLength: most });
    } catch (error) {
      return refuse(faultOf(coding, error as NodeJS.ErrnoException, most));
    }
  }
  return { body, fault: undefined };
}

function faultOf(coding: string, { code, message }: NodeJS.ErrnoException, most: number): string {
  if (code === 'ERR_BUFFER_TOO_LARGE') return `expected a body of at most ${most} bytes after ${coding}`;
  return `expected a body in the coding ${coding}: ${message}`;
}
