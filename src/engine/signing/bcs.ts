import { type ByteReader, InvalidBytesError } from '../crypto/byte-reader.ts';
import { bytesToUtf8 } from '../crypto/encoding.ts';

/*
 * The parts of BCS that Aptos and Sui share: lengths and variants as shortest-form ULEB128, integers little-endian.
 * Source: github.com/diem/bcs.
 */

function readBcsLength(reader: ByteReader): number {
  return Number(reader.uleb128(31));
}

/** Returns the variant index of an enum. */
export function readBcsVariant(reader: ByteReader): number {
  return Number(reader.uleb128(32));
}

export function readBcsBool(reader: ByteReader): boolean {
  const byte = reader.u8();
  if (byte > 1) throw new InvalidBytesError(`expected 0 or 1, got ${byte}`);
  return byte === 1;
}

export function readBcsBytes(reader: ByteReader): Uint8Array {
  return reader.bytes(readBcsLength(reader));
}

export function readBcsText(reader: ByteReader): string {
  const text = bytesToUtf8(readBcsBytes(reader));
  if (text === undefined) throw new InvalidBytesError('expected UTF-8 text');
  return text;
}

export function readBcsMany<T>(reader: ByteReader, read: () => T): T[] {
  const count = readBcsLength(reader);
  // Each item takes at least one byte, so a larger count is invalid. The check comes first to avoid a long loop.
  if (count > reader.remaining()) throw new InvalidBytesError(`expected ${count} items, got fewer`);
  const items: T[] = [];
  for (let index = 0; index < count; index += 1) items.push(read());
  return items;
}
