import { bytesTo0xHex, bytesToHex } from '../../crypto/encoding.ts';

/** A function parameter in a JSON ABI. */
export interface AbiParameter {
  readonly name?: string | undefined;
  readonly type: string;
  readonly components?: readonly AbiParameter[] | undefined;
}

/**
 * A decoded argument: a string (integers in decimal, addresses and bytes in `0x` hex), or a list of elements or
 * members.
 */
export type AbiValue = string | readonly AbiValue[];

/** Thrown when the bytes are not the canonical encoding of the arguments. */
export class AbiEncodingError extends Error {
  /** True if bytes are missing. False if the encoding is not canonical. */
  readonly isTruncated: boolean;

  constructor(isTruncated: boolean) {
    super(
      isTruncated ? 'the encoded arguments are truncated' : 'the arguments are not in canonical encoding',
    );
    this.name = 'AbiEncodingError';
    this.isTruncated = isTruncated;
  }
}

const WORD_BYTES = 32;
const WORD_DIGITS = 2 * WORD_BYTES;
const ADDRESS_DIGITS = 40;
const WORD_BITS = 256;
/**
 * The number of hex digits of the largest accepted length or offset: six bytes, which a JavaScript number represents
 * exactly.
 */
const LENGTH_DIGITS = 12;
const ALL_ZEROS = /^0*$/;
const ARRAY = /^(.*)\[([0-9]*)\]$/;
const INTEGER = /^(u?)int([0-9]+)$/;
const FIXED_BYTES = /^bytes([0-9]+)$/;

/** The bytes to decode. `tail` is the offset at which the next dynamic content must start. */
interface Reader {
  readonly bytes: Uint8Array;
  readonly digits: string;
  tail: number;
}

/** A decoder for values of one type. */
interface Codec {
  /** The number of bytes in the head: a static value itself, or the offset of a dynamic value. */
  readonly headBytes: number;
  readonly isDynamic: boolean;
  /** Reads the value at offset `at`. A dynamic value moves `tail` past its end. */
  readonly read: (reader: Reader, at: number) => AbiValue;
}

/**
 * Compiles a decoder for the arguments of a function. It accepts only the canonical encoding: dynamic contents in
 * order and without gaps, zero padding, no trailing bytes. Decoding takes linear time.
 *
 * @param parameters with canonical type names; fixed arrays and tuples have at least one element.
 * @returns a function that decodes the bytes after the selector, or throws AbiEncodingError.
 * @see the contract ABI specification of Solidity, "Formal Specification of the Encoding".
 */
export function compileArguments(
  parameters: readonly AbiParameter[],
): (argumentBytes: Uint8Array) => readonly AbiValue[] {
  const codecs = parameters.map(({ type, components }) => compileType(type, components));
  const headBytes = sumHeads(codecs);
  return (argumentBytes) => {
    const reader = { bytes: argumentBytes, digits: bytesToHex(argumentBytes), tail: headBytes };
    const values = readSiblings(reader, 0, codecs);
    if (reader.tail !== argumentBytes.length) throw new AbiEncodingError(false);
    return values;
  };
}

/** Does what `compileArguments` does, but the decoder returns undefined instead of throwing AbiEncodingError. */
export function compileValues(
  parameters: readonly AbiParameter[],
): (bytes: Uint8Array) => readonly AbiValue[] | undefined {
  const read = compileArguments(parameters);
  return (bytes) => {
    try {
      return read(bytes);
    } catch (error) {
      if (error instanceof AbiEncodingError) return undefined;
      throw error;
    }
  };
}

const SELECTOR_BYTES = 4;

/**
 * Compiles a decoder for calls of one function. The decoder returns the arguments, or undefined if the bytes are not
 * a call of that function in canonical encoding.
 *
 * @param selector `0x` and 8 hex digits.
 */
export function compileCall(
  selector: string,
  parameters: readonly AbiParameter[],
): (callData: Uint8Array) => readonly AbiValue[] | undefined {
  const read = compileValues(parameters);
  return (callData) =>
    bytesTo0xHex(callData.subarray(0, SELECTOR_BYTES)) === selector
      ? read(callData.subarray(SELECTOR_BYTES))
      : undefined;
}

function compileType(type: string, components: readonly AbiParameter[] | undefined): Codec {
  const array = ARRAY.exec(type);
  if (array) {
    const [, elementType = '', length = ''] = array;
    const element = compileType(elementType, components);
    return length === '' ? arrayCodec(element) : fixedArrayCodec(element, Number(length));
  }
  if (type === 'tuple') {
    return tupleCodec((components ?? []).map((member) => compileType(member.type, member.components)));
  }
  if (type === 'string') return bytesCodec(readText);
  if (type === 'bytes') return bytesCodec(bytesTo0xHex);
  return wordCodec(wordReader(type));
}

function sumHeads(codecs: readonly Codec[]): number {
  return codecs.reduce((sum, { headBytes }) => sum + headBytes, 0);
}

/** Reads adjacent values: first the heads, which start at `at`, then the dynamic contents in the same order. */
function readSiblings(reader: Reader, at: number, codecs: readonly Codec[]): AbiValue[] {
  let head = at;
  return codecs.map((codec) => {
    const from = head;
    head += codec.headBytes;
    if (!codec.isDynamic) return codec.read(reader, from);
    if (readLength(reader, from) !== reader.tail - at) throw new AbiEncodingError(false);
    return codec.read(reader, reader.tail);
  });
}

function tupleCodec(members: readonly Codec[]): Codec {
  return siblingsCodec(
    sumHeads(members),
    members.some(({ isDynamic }) => isDynamic),
    () => members,
  );
}

function fixedArrayCodec(element: Codec, length: number): Codec {
  return siblingsCodec(length * element.headBytes, element.isDynamic, () => repeat(element, length));
}

/**
 * Returns a codec for adjacent values. `codecs` is called only after the head bytes were found to exist, because a
 * type may declare any number of elements.
 */
function siblingsCodec(headBytes: number, isDynamic: boolean, codecs: () => readonly Codec[]): Codec {
  return {
    headBytes: isDynamic ? WORD_BYTES : headBytes,
    isDynamic,
    read(reader, at) {
      requireBytes(reader, at, headBytes);
      if (isDynamic) reader.tail = at + headBytes;
      return readSiblings(reader, at, codecs());
    },
  };
}

function arrayCodec(element: Codec): Codec {
  return {
    headBytes: WORD_BYTES,
    isDynamic: true,
    read(reader, at) {
      const length = readLength(reader, at);
      const from = at + WORD_BYTES;
      const headBytes = length * element.headBytes;
      requireBytes(reader, from, headBytes);
      reader.tail = from + headBytes;
      return readSiblings(reader, from, repeat(element, length));
    },
  };
}

function repeat(codec: Codec, length: number): readonly Codec[] {
  return Array.from({ length }, () => codec);
}

function bytesCodec(asText: (content: Uint8Array) => string): Codec {
  return {
    headBytes: WORD_BYTES,
    isDynamic: true,
    read(reader, at) {
      const from = at + WORD_BYTES;
      const end = from + readLength(reader, at);
      const paddedEnd = from + Math.ceil((end - from) / WORD_BYTES) * WORD_BYTES;
      requireBytes(reader, from, paddedEnd - from);
      requireZeros(reader.digits.slice(2 * end, 2 * paddedEnd));
      reader.tail = paddedEnd;
      return asText(reader.bytes.subarray(from, end));
    },
  };
}

function wordCodec(asText: (word: string) => string): Codec {
  return { headBytes: WORD_BYTES, isDynamic: false, read: (reader, at) => asText(readWord(reader, at)) };
}

/** Returns a function that converts a word of 64 hex digits to the value's string. */
function wordReader(type: string): (word: string) => string {
  const integer = INTEGER.exec(type);
  if (integer) {
    const bits = Number(integer[2]);
    return integer[1] === 'u' ? unsignedReader(bits) : signedReader(bits);
  }
  const bytes = FIXED_BYTES.exec(type);
  if (bytes) return fixedBytesReader(2 * Number(bytes[1]));
  return type === 'address' ? readAddress : readBoolean;
}

function unsignedReader(bits: number): (word: string) => string {
  const padding = WORD_DIGITS - bits / 4;
  return (word) => {
    requireZeros(word.slice(0, padding));
    return BigInt(`0x${word}`).toString();
  };
}

function signedReader(bits: number): (word: string) => string {
  return (word) => {
    const value = BigInt.asIntN(WORD_BITS, BigInt(`0x${word}`));
    if (BigInt.asIntN(bits, value) !== value) throw new AbiEncodingError(false);
    return value.toString();
  };
}

function fixedBytesReader(digits: number): (word: string) => string {
  return (word) => {
    requireZeros(word.slice(digits));
    return `0x${word.slice(0, digits)}`;
  };
}

function readAddress(word: string): string {
  requireZeros(word.slice(0, -ADDRESS_DIGITS));
  return `0x${word.slice(-ADDRESS_DIGITS)}`;
}

function readBoolean(word: string): string {
  requireZeros(word.slice(0, -1));
  if (word.endsWith('1')) return 'true';
  requireZeros(word);
  return 'false';
}

// `ignoreBOM` keeps a byte order mark as part of the string.
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function readText(content: Uint8Array): string {
  try {
    return utf8.decode(content);
  } catch {
    throw new AbiEncodingError(false);
  }
}

/** Reads a length or an offset. A number larger than any possible request counts as missing bytes. */
function readLength(reader: Reader, at: number): number {
  const word = readWord(reader, at);
  if (!ALL_ZEROS.test(word.slice(0, -LENGTH_DIGITS))) throw new AbiEncodingError(true);
  return Number.parseInt(word, 16);
}

function readWord(reader: Reader, at: number): string {
  requireBytes(reader, at, WORD_BYTES);
  return reader.digits.slice(2 * at, 2 * (at + WORD_BYTES));
}

function requireBytes({ bytes }: Reader, at: number, count: number): void {
  if (at + count > bytes.length) throw new AbiEncodingError(true);
}

function requireZeros(digits: string): void {
  if (!ALL_ZEROS.test(digits)) throw new AbiEncodingError(false);
}
