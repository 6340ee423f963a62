import { bytesTo0xHex, bytesToHex } from '../../crypto/encoding.ts';

/** A parameter of a function as a JSON ABI has it. */
export interface AbiParameter {
  readonly name?: string | undefined;
  readonly type: string;
  readonly components?: readonly AbiParameter[] | undefined;
}

/** A decoded argument as text (integers decimal, addresses and bytes in `0x` hex), or its elements or members in order. */
export type AbiValue = string | readonly AbiValue[];

/** Bytes that are not what encoding the arguments that they seem to hold would give. */
export class AbiEncodingError extends Error {
  /** Whether bytes are missing; else some are not as an encoder writes them. */
  readonly isCutOff: boolean;

  constructor(isCutOff: boolean) {
    super(
      isCutOff ? 'the encoded arguments are cut off' : 'the arguments are not in their canonical encoding',
    );
    this.name = 'AbiEncodingError';
    this.isCutOff = isCutOff;
  }
}

const WORD_BYTES = 32;
const WORD_DIGITS = 2 * WORD_BYTES;
const ADDRESS_DIGITS = 40;
const WORD_BITS = 256;
/** Digits of a length or offset that some request could have: six bytes, which a number holds exactly. */
const LENGTH_DIGITS = 12;
const ALL_ZEROS = /^0*$/;
const ARRAY = /^(.*)\[([0-9]*)\]$/;
const INTEGER = /^(u?)int([0-9]+)$/;
const FIXED_BYTES = /^bytes([0-9]+)$/;

/** What is being read, and where the next content of variable length begins. */
interface Reader {
  readonly bytes: Uint8Array;
  readonly digits: string;
  tail: number;
}

/** How the values of one type are read. */
interface Codec {
  /** Bytes that a value takes among its siblings: itself, or the offset of what is of variable length. */
  readonly headBytes: number;
  readonly isDynamic: boolean;
  /** Reads the value whose encoding begins at `at`. One of variable length moves `tail` behind itself. */
  readonly read: (reader: Reader, at: number) => AbiValue;
}

/**
 * Makes the reader of the encoded arguments of a function. It takes the one encoding that encoders write and no other:
 * contents of variable length follow each other in order without gaps, padding is as the type demands, nothing comes
 * behind the last argument. Reading is linear in the bytes.
 *
 * @param parameters of the contract ABI's types by their canonical names; arrays and tuples of at least one element.
 * @see the contract ABI specification of Solidity, "Formal Specification of the Encoding".
 *
 * @returns reads the arguments that follow the selector. Throws AbiEncodingError.
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

/** As `compileArguments`, with undefined in place of what it throws. */
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
 * Makes the reader of the calls of one function: their arguments, or undefined for bytes that are no call of it in its
 * canonical encoding.
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

/** Reads values that stand side by side from `at`: their heads, then in the same order what the heads point to. */
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

/** `codecs` is asked once the bytes of the heads are known to be there: a type may claim any number of elements. */
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

/** How the text of a value is found in the 64 digits of its word. */
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

// A byte order mark belongs to the text.
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function readText(content: Uint8Array): string {
  try {
    return utf8.decode(content);
  } catch {
    throw new AbiEncodingError(false);
  }
}

/** A length or an offset. What is larger than any request has bytes is as if they were missing. */
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
