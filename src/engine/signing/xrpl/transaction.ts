import { DEFAULT_DEFINITIONS, decode, encode, encodeForSigning } from 'ripple-binary-codec';
import { hexToBytes } from '../../crypto/encoding.ts';
import { InvalidTransactionError } from '../signing-errors.ts';

// The codec copies all remaining bytes at each read and decodes nested objects again at every level: eight kilobytes of
// nested objects take minutes. rippled nests at most ten deep. The largest transaction is a Batch of eight transactions
// with eight signers that are lists of 32 keys each: 35 kilobytes and 1,500 fields, which take a tenth of a second.
const MAX_BYTES = 40 * 1024;
const MAX_DEPTH = 10;
const MAX_FIELDS = 1_600;

/** The part of the codec's parser that its types read values with. */
interface Cursor {
  at: number;
  read(count: number): Uint8Array;
  skip(count: number): void;
  peek(): number;
  readUIntN(count: number): number;
  readUInt8(): number;
  readUInt16(): number;
  readUInt32(): number;
  size(): number;
  end(): boolean;
}

/**
 * Refuses a serialized transaction that the codec would take long to decode, by reading its field headers only. Throws
 * InvalidTransactionError for one that is too large, and any error for one that is malformed.
 *
 * Source: XRPL docs, serialization format.
 */
function refuseLargeXrpl(blob: Uint8Array): void {
  if (blob.length > MAX_BYTES) throw tooLarge(`${MAX_BYTES} bytes`, blob.length);
  const cursor = cursorOver(blob);
  let [fields, depth] = [0, 0];
  while (!cursor.end()) {
    const field = DEFAULT_DEFINITIONS.field.fromString(String(readOrdinal(cursor)));
    fields += 1;
    if (/^(Object|Array)EndMarker$/.test(field.name)) depth -= 1;
    else if (/^ST(Object|Array)$/.test(field.type.name)) depth += 1;
    else fields += sizeOf(cursor, field);
    if (depth > MAX_DEPTH) throw tooLarge(`${MAX_DEPTH} nested objects and arrays`, depth);
    if (fields > MAX_FIELDS) throw tooLarge(`${MAX_FIELDS} fields`, 'more');
  }
}

/** Reads the value of a field; returns how many fields its steps count as, which only paths have. */
function sizeOf(cursor: Cursor, field: ReturnType<typeof DEFAULT_DEFINITIONS.field.fromString>): number {
  const before = cursor.at;
  const length = field.isVariableLengthEncoded ? readLength(cursor) : undefined;
  field.associatedType.fromParser(cursor as never, length);
  return field.type.name === 'PathSet' ? Math.floor((cursor.at - before) / 21) : 0;
}

function tooLarge(most: string, got: number | string): InvalidTransactionError {
  return new InvalidTransactionError('/transaction', `expected at most ${most}, got ${got}`);
}

function cursorOver(bytes: Uint8Array): Cursor {
  return {
    at: 0,
    read(count) {
      if (this.at + count > bytes.length) throw new RangeError(`expected ${count} more bytes`);
      this.at += count;
      return bytes.slice(this.at - count, this.at);
    },
    skip(count) {
      this.read(count);
    },
    peek() {
      return bytes[this.at] ?? 0;
    },
    readUIntN(count) {
      return this.read(count).reduce((number, byte) => number * 256 + byte, 0);
    },
    readUInt8() {
      return this.readUIntN(1);
    },
    readUInt16() {
      return this.readUIntN(2);
    },
    readUInt32() {
      return this.readUIntN(4);
    },
    size: () => bytes.length,
    end() {
      return this.at >= bytes.length;
    },
  };
}

/** The type code and the field code, in one to three bytes. */
function readOrdinal(cursor: Cursor): number {
  const first = cursor.readUInt8();
  const type = first >> 4 || cursor.readUInt8();
  const nth = first & 15 || cursor.readUInt8();
  return (type << 16) | nth;
}

function readLength(cursor: Cursor): number {
  const first = cursor.readUInt8();
  if (first <= 192) return first;
  if (first <= 240) return 193 + (first - 193) * 256 + cursor.readUInt8();
  return 12_481 + (first - 241) * 65_536 + cursor.readUInt8() * 256 + cursor.readUInt8();
}

/** A transaction as JSON with the ledger's field names. */
export type XrplTransaction = Readonly<Record<string, unknown>>;

/** "STX\0", the prefix of the bytes that a single signer signs. */
const SIGNING_PREFIX = '53545800';
const HEX = /^(?:[0-9A-F]{2})+$/;

/**
 * Decodes a serialized transaction from hex, with or without the signing prefix.
 * Throws InvalidTransactionError when it does not encode to the same bytes again. Source: XRPL docs, serialization
 * format.
 */
export function decodeXrplTransaction(hex: string): XrplTransaction {
  const upper = hex.toUpperCase();
  // A serialized transaction starts with field code 12 of its type, so it cannot start with the prefix.
  const blob = upper.startsWith(SIGNING_PREFIX) ? upper.slice(SIGNING_PREFIX.length) : upper;
  if (!HEX.test(blob))
    throw new InvalidTransactionError('/transaction', 'expected an even number of hex digits');
  try {
    refuseLargeXrpl(hexToBytes(blob));
    const transaction = decode(blob);
    if (encode(transaction) === blob && typeof transaction.TransactionType === 'string') return transaction;
  } catch (error) {
    if (error instanceof InvalidTransactionError) throw error;
    // Anything else is the codec's and refused below.
  }
  throw new InvalidTransactionError('/transaction', 'expected one transaction in canonical serialization');
}

/** The bytes to sign, including the prefix, as upper-case hex. */
export function encodeXrplForSigning(transaction: XrplTransaction): string {
  return encodeForSigning({ ...transaction });
}

/** The serialized transaction as upper-case hex. */
export function encodeXrplTransaction(transaction: XrplTransaction): string {
  return encode({ ...transaction });
}
