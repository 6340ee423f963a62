/** Thrown when bytes are too short, too long, or encode a length in more bytes than necessary. */
export class InvalidBytesError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'InvalidBytesError';
  }
}

/**
 * Reads a binary format sequentially.
 *
 * @throws InvalidBytesError for every read past the end.
 */
export interface ByteReader {
  /** Returns the number of bytes read so far. */
  offset(): number;
  remaining(): number;
  u8(): number;
  /** Reads a little-endian integer. */
  u16(): number;
  /** Reads a little-endian integer. */
  u32(): number;
  /** Reads a little-endian integer. */
  u64(): bigint;
  /** Reads a little-endian integer. */
  u128(): bigint;
  /** Returns a view of the bytes since an earlier offset, not a copy. */
  since(offset: number): Uint8Array;
  /** Returns a view, not a copy. */
  bytes(length: number): Uint8Array;
  /**
   * Reads a ULEB128 number below 2^bits and rejects encodings that are longer than necessary. With 16 bits, this is
   * Solana's compact-u16.
   */
  uleb128(bits: number): bigint;
  /**
   * Requires that all bytes were read.
   *
   * @throws InvalidBytesError
   */
  end(): void;
}

export function createByteReader(source: Uint8Array): ByteReader {
  const view = new DataView(source.buffer, source.byteOffset, source.byteLength);
  let position = 0;

  function take(length: number): number {
    if (length > source.length - position) {
      throw new InvalidBytesError(
        `expected ${length} bytes at offset ${position}, got ${source.length - position}`,
      );
    }
    const start = position;
    position += length;
    return start;
  }

  function uleb128(bits: number): bigint {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = view.getUint8(take(1));
      value |= BigInt(byte & 0x7f) << shift;
      if (value >> BigInt(bits) !== 0n) throw new InvalidBytesError(`expected a length below 2^${bits}`);
      if (byte < 0x80) {
        if (byte === 0 && shift > 0n)
          throw new InvalidBytesError('expected a length in its shortest encoding');
        return value;
      }
      if (shift > BigInt(bits)) throw new InvalidBytesError(`expected a length below 2^${bits}`);
    }
  }

  return {
    offset: () => position,
    remaining: () => source.length - position,
    since: (offset) => source.subarray(offset, position),
    u8: () => view.getUint8(take(1)),
    u16: () => view.getUint16(take(2), true),
    u32: () => view.getUint32(take(4), true),
    u64: () => view.getBigUint64(take(8), true),
    u128: () => {
      const start = take(16);
      return view.getBigUint64(start, true) | (view.getBigUint64(start + 8, true) << 64n);
    },
    bytes: (length) => {
      const start = take(length);
      return source.subarray(start, start + length);
    },
    uleb128,
    end: () => {
      if (position !== source.length) {
        throw new InvalidBytesError(
          `expected the end at offset ${position}, got ${source.length - position} more bytes`,
        );
      }
    },
  };
}
