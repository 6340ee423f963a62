import { type ByteReader, createByteReader, InvalidBytesError } from '../../crypto/byte-reader.ts';
import { concatBytes } from '../../crypto/encoding.ts';

/*
 * The protobuf wire types of TRON messages, in the canonical encoding of its nodes: fields in ascending order,
 * defaults omitted, minimal lengths.
 */

/** A decoded field: a varint, or length-delimited bytes. */
export type ProtobufField =
  | { readonly number: number; readonly varint: bigint }
  | { readonly number: number; readonly bytes: Uint8Array };

const VARINT = 0;
const LENGTH_DELIMITED = 2;

/** Encodes an int64 field with a value from 0 to 2^63 - 1. Returns no bytes for 0, the default. */
export function int64Field(number: number, value: bigint): Uint8Array {
  return value === 0n ? new Uint8Array() : concatBytes(varint(tag(number, VARINT)), varint(value));
}

/** Encodes a bytes, string or message field. Returns no bytes for an empty value, the default. */
export function bytesField(number: number, bytes: Uint8Array): Uint8Array {
  if (bytes.length === 0) return new Uint8Array();
  return concatBytes(varint(tag(number, LENGTH_DELIMITED)), varint(BigInt(bytes.length)), bytes);
}

function tag(number: number, wireType: number): bigint {
  return BigInt((number << 3) | wireType);
}

function varint(value: bigint): Uint8Array {
  const bytes: number[] = [];
  let rest = value;
  while (rest >= 0x80n) {
    bytes.push(Number(rest & 0x7fn) | 0x80);
    rest >>= 7n;
  }
  bytes.push(Number(rest));
  return Uint8Array.from(bytes);
}

/**
 * More fields than any TRON message that is read here has. Without a limit, a message of 150 KB with 75,000 fields
 * would block the event loop.
 */
const MAX_FIELDS = 64;

/**
 * Reads the fields of a message in order of appearance.
 *
 * @throws InvalidBytesError for a message that is malformed or has more than `MAX_FIELDS`.
 */
export function readProtobuf(message: Uint8Array): readonly ProtobufField[] {
  const reader = createByteReader(message);
  const fields: ProtobufField[] = [];
  while (reader.remaining() > 0) {
    if (fields.length === MAX_FIELDS) throw new InvalidBytesError(`expected at most ${MAX_FIELDS} fields`);
    fields.push(readField(reader));
  }
  return fields;
}

function readField(reader: ByteReader): ProtobufField {
  const key = Number(reader.uleb128(32));
  const number = key >>> 3;
  const wireType = key & 7;
  if (number === 0) throw new InvalidBytesError('expected a field number above 0');
  if (wireType === VARINT) return { number, varint: reader.uleb128(64) };
  if (wireType === LENGTH_DELIMITED) return { number, bytes: reader.bytes(Number(reader.uleb128(32))) };
  throw new InvalidBytesError(`expected a varint or bytes, got wire type ${wireType}`);
}
