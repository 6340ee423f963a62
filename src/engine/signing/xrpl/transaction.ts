import { DEFAULT_DEFINITIONS, decode, encode } from 'ripple-binary-codec';
import { bytesToHex, concatBytes, hexToBytes } from '../../crypto/encoding.ts';
import { InvalidTransactionError } from '../signing-errors.ts';

// Limits on what is passed to the codec. The codec copies all remaining bytes at each read, and decodes nested objects
// again at every level: 33 kilobytes of memos take a tenth of a second, and eight kilobytes of nested objects take
// minutes. So the codec gets only the plain fields of one object at a time.
//
// The largest real transaction is a Batch of eight transactions with eight signers that are lists of 32 keys each: 35
// kilobytes and 1,500 fields. rippled nests at most ten deep. A payment has at most six paths of eight steps.
const MAX_BYTES = 40 * 1024;
const MAX_DEPTH = 10;
const MAX_FIELDS = 1_600;
const MAX_STEPS = 100;
/** The maximum number of signers in a SignerList. Source: XRPL docs, SignerListSet. */
const MAX_SIGNERS = 32;

type Definition = ReturnType<typeof DEFAULT_DEFINITIONS.field.fromString>;

/** The part of the codec's parser from which its types read values. */
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

/** A transaction as JSON with the ledger's field names. */
export type XrplTransaction = Readonly<Record<string, unknown>>;

/** A field of a transaction and its position in the bytes. */
interface PlacedField {
  readonly definition: Definition;
  readonly start: number;
  readonly end: number;
}

/** A transaction and the fields from which it was read. */
export interface ReadXrplTransaction {
  readonly transaction: XrplTransaction;
  readonly bytes: Uint8Array;
  /** In the order of the bytes, which is the order of the definitions. */
  readonly fields: readonly PlacedField[];
}

/** The progress of reading a transaction, which is compared with the limits. */
interface Progress {
  fields: number;
  depth: number;
}

interface ReadObject {
  readonly json: Record<string, unknown>;
  readonly fields: readonly PlacedField[];
}

const END_OF_OBJECT = 0xe1;
const END_OF_ARRAY = 0xf1;

/**
 * Reads the fields of an object, up to the end of the bytes or, within another field, up to its end mark. Source:
 * XRPL docs, serialization format.
 *
 * INVARIANT: rejects fields that are not in the order of the definitions, and values in a form other than the codec's.
 * So policies see what every reader of the bytes sees.
 */
function readObject(cursor: Cursor, bytes: Uint8Array, progress: Progress, isInner: boolean): ReadObject {
  const fields: PlacedField[] = [];
  const plain: Uint8Array[] = [];
  const nested: Record<string, unknown> = {};
  let before = 0;
  while (isInner ? cursor.peek() !== END_OF_OBJECT : !cursor.end()) {
    const start = cursor.at;
    const definition = readDefinition(cursor, progress);
    if (definition.ordinal <= before) throw new RangeError(`${definition.name} is not in its place`);
    before = definition.ordinal;
    const { name } = definition.type;
    if (name === 'STObject') nested[definition.name] = readNested(cursor, bytes, progress);
    else if (name === 'STArray') {
      const most = definition.name === 'SignerEntries' ? MAX_SIGNERS : Number.POSITIVE_INFINITY;
      nested[definition.name] = readArray(cursor, bytes, { progress, most });
    } else {
      skipValue(cursor, definition, progress);
      plain.push(bytes.subarray(start, cursor.at));
    }
    fields.push({ definition, start, end: cursor.at });
  }
  if (isInner) cursor.skip(1);
  return { json: { ...readPlain(plain), ...nested }, fields };
}

/** Reads an object within a field or an array. Its header has already been read. */
function readNested(cursor: Cursor, bytes: Uint8Array, progress: Progress): Record<string, unknown> {
  enter(progress);
  const { json } = readObject(cursor, bytes, progress, true);
  progress.depth -= 1;
  return json;
}

function readArray(
  cursor: Cursor,
  bytes: Uint8Array,
  { progress, most }: { readonly progress: Progress; readonly most: number },
): Record<string, unknown>[] {
  enter(progress);
  const items: Record<string, unknown>[] = [];
  while (cursor.peek() !== END_OF_ARRAY) {
    const definition = readDefinition(cursor, progress);
    if (definition.type.name !== 'STObject') throw new RangeError('expected objects in an array');
    if (items.length === most) throw tooLarge(`${most} signers`, 'more');
    items.push({ [definition.name]: readNested(cursor, bytes, progress) });
  }
  cursor.skip(1);
  progress.depth -= 1;
  return items;
}

function enter(progress: Progress): void {
  progress.depth += 1;
  if (progress.depth > MAX_DEPTH) throw tooLarge(`${MAX_DEPTH} nested objects and arrays`, progress.depth);
}

/** Decodes fields without nested fields by means of the codec. */
function readPlain(fields: readonly Uint8Array[]): Record<string, unknown> {
  if (fields.length === 0) return {};
  const hex = bytesToHex(concatBytes(...fields)).toUpperCase();
  const json = decode(hex);
  if (encode(json) !== hex) throw new RangeError('expected the canonical form of each value');
  return json;
}

/** Reads the next header and returns the definition of its field. */
function readDefinition(cursor: Cursor, progress: Progress): Definition {
  const start = cursor.at;
  const first = cursor.readUInt8();
  const type = first >> 4 || cursor.readUInt8();
  const nth = first & 15 || cursor.readUInt8();
  const definition = DEFAULT_DEFINITIONS.field.fromString(String((type << 16) | nth));
  const isShortest = cursor.at - start === 1 + Number(type > 15) + Number(nth > 15);
  if (!isShortest || /EndMarker$/.test(definition.name)) throw new RangeError('expected a field');
  progress.fields += 1;
  if (progress.fields > MAX_FIELDS) throw tooLarge(`${MAX_FIELDS} fields`, 'more');
  return definition;
}

function skipValue(cursor: Cursor, definition: Definition, progress: Progress): void {
  const before = cursor.at;
  const length = definition.isVariableLengthEncoded ? readLength(cursor) : undefined;
  definition.associatedType.fromParser(cursor as never, length);
  if (definition.type.name !== 'PathSet') return;
  const steps = Math.floor((cursor.at - before) / 21);
  if (steps > MAX_STEPS) throw tooLarge(`${MAX_STEPS} steps of paths`, steps);
  progress.fields += steps;
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

function readLength(cursor: Cursor): number {
  const first = cursor.readUInt8();
  if (first <= 192) return first;
  if (first <= 240) return 193 + (first - 193) * 256 + cursor.readUInt8();
  return 12_481 + (first - 241) * 65_536 + cursor.readUInt8() * 256 + cursor.readUInt8();
}

/** "STX\0", the prefix of the bytes that a single signer signs. */
const SIGNING_PREFIX = '53545800';
const HEX = /^(?:[0-9A-F]{2})+$/;

/**
 * Reads a serialized transaction from hex, with or without the signing prefix.
 *
 * @throws InvalidTransactionError for a transaction that is too large, or that would be encoded to other bytes.
 */
export function readXrplTransaction(hex: string): ReadXrplTransaction {
  const upper = hex.toUpperCase();
  // A serialized transaction starts with field code 12 of its type, so it cannot start with the prefix.
  const blob = upper.startsWith(SIGNING_PREFIX) ? upper.slice(SIGNING_PREFIX.length) : upper;
  if (!HEX.test(blob))
    throw new InvalidTransactionError('/transaction', 'expected an even number of hex digits');
  const bytes = hexToBytes(blob);
  if (bytes.length > MAX_BYTES) throw tooLarge(`${MAX_BYTES} bytes`, bytes.length);
  try {
    const { json, fields } = readObject(cursorOver(bytes), bytes, { fields: 0, depth: 0 }, false);
    if (typeof json.TransactionType === 'string') return { transaction: json, bytes, fields };
  } catch (error) {
    if (error instanceof InvalidTransactionError) throw error;
    // The codec's own errors, for example about a malformed field, are replaced by the error below.
  }
  throw new InvalidTransactionError('/transaction', 'expected one transaction in canonical serialization');
}

/** Returns only the transaction that `readXrplTransaction` reads. */
export function decodeXrplTransaction(hex: string): XrplTransaction {
  return readXrplTransaction(hex).transaction;
}

/** Values to set in a transaction, in the codec's format, by field name. */
type SetFields = Readonly<Record<string, string>>;

/** Returns the bytes to sign, as upper-case hex: the prefix and the transaction with these fields set. */
export function serializeForSigning(read: ReadXrplTransaction, set: SetFields): string {
  return SIGNING_PREFIX + serialize(read, set, ({ definition }) => definition.isSigningField);
}

/** Returns the transaction with these fields set, as upper-case hex. */
export function serializeSigned(read: ReadXrplTransaction, set: SetFields): string {
  return serialize(read, set, () => true);
}

function serialize(
  { bytes, fields }: ReadXrplTransaction,
  set: SetFields,
  isKept: (field: PlacedField) => boolean,
): string {
  const kept = fields
    .filter((field) => isKept(field) && !Object.hasOwn(set, field.definition.name))
    .map(({ definition: { ordinal }, start, end }) => ({
      ordinal,
      hex: bytesToHex(bytes.subarray(start, end)).toUpperCase(),
    }));
  const added = Object.entries(set).map(([name, value]) => ({
    ordinal: DEFAULT_DEFINITIONS.field.fromString(name).ordinal,
    hex: encode({ [name]: value }),
  }));
  return [...kept, ...added]
    .sort((a, b) => a.ordinal - b.ordinal)
    .map(({ hex }) => hex)
    .join('');
}

/** Encodes a transaction from JSON as upper-case hex. */
export function encodeXrplTransaction(transaction: XrplTransaction): string {
  return encode({ ...transaction });
}
