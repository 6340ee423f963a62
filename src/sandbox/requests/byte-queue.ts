/** Byte strings in the order in which they were added, outside of the heap of JavaScript. */
export interface ByteQueue {
  /** Adds a copy. */
  add(bytes: Uint8Array): void;
  /** Memory for so many bytes that can be written without a copy, from `offset` on; undefined if it lies in two pieces. */
  room(most: number): Buffer | undefined;
  /** Where the room begins in its memory. */
  offset(): number;
  /** Adds the bytes that were written into the room. */
  keep(length: number): void;
  /** The position of what is added next. It increases with every one. */
  end(): number;
  /** A copy of what was added at a position and not dropped yet. */
  read(position: number, length: number): Buffer;
  /** Drops the oldest bytes. */
  drop(length: number): void;
  /** Drops all, with their memory. */
  clear(): void;
}

const PIECE_BYTES = 262_144;

/** So many pieces of dropped bytes are kept to be used again. */
const MOST_UNUSED = 4;

/** Creates an empty queue. It takes pieces of memory as it needs them, and reuses those of dropped bytes. */
export function createByteQueue(pieceBytes = PIECE_BYTES): ByteQueue {
  /** Of the bytes from `firstPiece * pieceBytes` on. */
  let pieces: Buffer[] = [];
  let unused: Buffer[] = [];
  let firstPiece = 0;
  let [start, end] = [0, 0];

  /** Calls `copy` with the part of each piece that a range covers, and where the part begins in the range. */
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
        if (unused.length < MOST_UNUSED) unused.push(piece);
        firstPiece += 1;
      }
    },
    clear() {
      [pieces, unused, firstPiece, start, end] = [[], [], 0, 0, 0];
    },
  };
}
