import { keccak_256 } from '@noble/hashes/sha3.js';
import { hexToBytes, utf8ToBytes } from '../../crypto/encoding.ts';
import { InvalidTypedDataError } from '../signing-errors.ts';

const ELEMENTARY = /^(?:(u?int)(\d{0,3})|bytes(\d{0,2})|address|bool|string)$/;
const INTEGER_TEXT = /^(?:-?\d{1,78}|0x[0-9a-fA-F]{1,64})$/;
const HEX_TEXT = /^0x[0-9a-fA-F]*$/;
const ADDRESS = /^0x[0-9a-fA-F]{40}$/;

/**
 * Returns whether this is an atomic or dynamic type of EIP-712 (`uint256`, `bytes32`, `string`, …), and not a struct or
 * an array.
 */
export function isElementaryType(type: string): boolean {
  const match = ELEMENTARY.exec(type);
  if (match === null) return false;
  const [, integer, bits, size] = match;
  if (integer !== undefined) return isIntegerSize(bits ?? '');
  return size === undefined || size === '' || isByteSize(size);
}

/**
 * Encodes one value of an elementary type as the 32-byte word of encodeData (EIP-712).
 *
 * @throws InvalidTypedDataError at `pointer`.
 */
export function encodeElementaryValue(type: string, value: unknown, pointer: string): Uint8Array {
  const word = encodeWord(type, value);
  if (word === undefined) throw new InvalidTypedDataError(pointer, `expected a value of type \`${type}\``);
  return word;
}

function encodeWord(type: string, value: unknown): Uint8Array | undefined {
  if (type === 'string') {
    return typeof value === 'string' && value.isWellFormed() ? keccak_256(utf8ToBytes(value)) : undefined;
  }
  if (type === 'bool') return typeof value === 'boolean' ? integerWord(value ? 1n : 0n) : undefined;
  if (type === 'address') {
    return typeof value === 'string' && ADDRESS.test(value) ? integerWord(BigInt(value)) : undefined;
  }
  if (type.startsWith('bytes')) return encodeBytes(type, value);
  return encodeInteger(type, value);
}

// `bytes` is hashed; `bytesN` is padded on the right.
function encodeBytes(type: string, value: unknown): Uint8Array | undefined {
  if (typeof value !== 'string' || !HEX_TEXT.test(value) || value.length % 2 !== 0) return undefined;
  const bytes = hexToBytes(value.slice(2));
  if (type === 'bytes') return keccak_256(bytes);
  if (bytes.length !== Number(type.slice('bytes'.length))) return undefined;
  const word = new Uint8Array(32);
  word.set(bytes);
  return word;
}

// Two's complement over 256 bits. Large integers are decimal or 0x hex strings.
function encodeInteger(type: string, value: unknown): Uint8Array | undefined {
  const integer = readInteger(value);
  if (integer === undefined) return undefined;
  const isSigned = type.startsWith('int');
  const bits = BigInt(type.replace(/^u?int/u, '') || '256');
  const [low, high] = isSigned ? [-(2n ** (bits - 1n)), 2n ** (bits - 1n)] : [0n, 2n ** bits];
  return integer >= low && integer < high ? integerWord(BigInt.asUintN(256, integer)) : undefined;
}

function readInteger(value: unknown): bigint | undefined {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : undefined;
  return typeof value === 'string' && INTEGER_TEXT.test(value) ? BigInt(value) : undefined;
}

function integerWord(value: bigint): Uint8Array {
  return hexToBytes(value.toString(16).padStart(64, '0'));
}

// CHOICE: `uint` and `int` without a size mean 256 bits, as in published clients.
function isIntegerSize(bits: string): boolean {
  if (bits === '') return true;
  const size = Number(bits);
  return !bits.startsWith('0') && size >= 8 && size <= 256 && size % 8 === 0;
}

function isByteSize(size: string): boolean {
  return !size.startsWith('0') && Number(size) <= 32;
}

export interface TypedDataField {
  readonly name: string;
  readonly type: string;
}

/** The members of each struct, in order. */
export type Structs = ReadonlyMap<string, readonly TypedDataField[]>;

export type ParsedType =
  | { readonly kind: 'struct' | 'elementary'; readonly name: string }
  | { readonly kind: 'array'; readonly element: ParsedType; readonly length: number | undefined };

export const DOMAIN = 'EIP712Domain';
const DOMAIN_FIELDS: readonly TypedDataField[] = [
  { name: 'name', type: 'string' },
  { name: 'version', type: 'string' },
  { name: 'chainId', type: 'uint256' },
  { name: 'verifyingContract', type: 'address' },
  { name: 'salt', type: 'bytes32' },
];
// CHOICE: far more than real applications need. The encoded type of each struct repeats all structs to which it
// refers, so without a limit one request could block the process for minutes.
const MAX_TYPES = 128;
const MAX_TYPES_LENGTH = 32_768;

// The `encodeType` string is `name(type member,type member)name(...)`. It is unambiguous if no name contains its
// punctuation and no struct name contains a space, because the first space of a member then ends its type. Real
// applications use member names such as `Wallet address` and `/`.
const MEMBER_NAME = /^[^(),[\]]*$/u;
const STRUCT_NAME = /^[^(),[\] ]+$/u;
const ARRAY_SIZES = /^(?:\[[0-9]*\])*$/u;

/** Returns the members of a domain whose type is not declared, in the order of EIP-712. */
export function deriveDomainFields(domain: Readonly<Record<string, unknown>>): readonly TypedDataField[] {
  // CHOICE: an empty string, null or an absent key means "not part of the domain". The exception is an empty `name`,
  // which published clients include in the domain.
  return DOMAIN_FIELDS.filter(({ name }) => {
    const value = domain[name];
    if (value === undefined || value === null) return false;
    return value !== '' || name === 'name';
  });
}

/**
 * Returns the declared structs by name. The type of each member must be known, even if no value of the message has
 * the member, as in ethers, geth and eth-account.
 *
 * @throws InvalidTypedDataError for types that can never be signed.
 */
export function readStructs(
  declared: Readonly<Record<string, readonly TypedDataField[]>>,
  pointer: string,
): Map<string, readonly TypedDataField[]> {
  const structs = new Map(Object.entries(declared));
  assertBounded(structs, pointer);
  for (const name of structs.keys()) {
    if (!STRUCT_NAME.test(name) || !name.isWellFormed() || isElementaryType(name)) {
      throw new InvalidTypedDataError(
        pointer,
        `expected a struct name without spaces, commas and brackets, got \`${name}\``,
      );
    }
  }
  for (const [name, fields] of structs) assertFields(structs, fields, `${pointer}/${escapePointer(name)}`);
  return structs;
}

function assertBounded(structs: Structs, pointer: string): void {
  let length = 0;
  for (const [name, fields] of structs) {
    length += name.length;
    for (const field of fields) length += field.name.length + field.type.length;
  }
  if (structs.size > MAX_TYPES || length > MAX_TYPES_LENGTH) {
    throw new InvalidTypedDataError(
      pointer,
      `expected at most ${MAX_TYPES} structs with ${MAX_TYPES_LENGTH} characters in total`,
    );
  }
}

function assertFields(structs: Structs, fields: readonly TypedDataField[], pointer: string): void {
  const known = new Set<string>();
  for (const { name, type } of fields) {
    if (!MEMBER_NAME.test(name) || !name.isWellFormed()) {
      throw new InvalidTypedDataError(
        pointer,
        `expected a member name without commas and brackets, got \`${name}\``,
      );
    }
    if (known.has(name))
      throw new InvalidTypedDataError(pointer, `expected distinct member names, got \`${name}\` twice`);
    known.add(name);
    const [base, sizes] = splitType(type);
    if ((!structs.has(base) && !isElementaryType(base)) || !ARRAY_SIZES.test(sizes)) {
      throw new InvalidTypedDataError(pointer, `\`${name}\` has the unknown type \`${type}\``);
    }
  }
}

/** Splits a type into the part before the first bracket, and the brackets. */
function splitType(type: string): [base: string, sizes: string] {
  const end = type.indexOf('[');
  return end === -1 ? [type, ''] : [type.slice(0, end), type.slice(end)];
}

/** Parses a member's type that `readStructs` has accepted. */
export function parseType(structs: Structs, type: string): ParsedType {
  const [name, sizes] = splitType(type);
  let parsed: ParsedType = { kind: structs.has(name) ? 'struct' : 'elementary', name };
  for (const [, size = ''] of sizes.matchAll(/\[([0-9]*)\]/gu)) {
    parsed = { kind: 'array', element: parsed, length: size === '' ? undefined : Number(size) };
  }
  return parsed;
}

/** Escapes a name as a reference token of a JSON pointer. RFC 6901 section 3. */
export function escapePointer(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}

/**
 * Returns EIP-712's encodeType: name(type member,...) of the struct, followed by the encoding of every referenced
 * struct, sorted by name. Structs with equal encodeType have equal type hashes, so equal values have equal digests.
 */
export function encodeType(structs: Structs, struct: string): string {
  const referred = new Set<string>([struct]);
  for (const name of referred) {
    for (const field of structs.get(name) ?? []) {
      const [base] = splitType(field.type);
      if (structs.has(base)) referred.add(base);
    }
  }
  referred.delete(struct);
  return [struct, ...[...referred].sort()]
    .map((name) => {
      const members = (structs.get(name) ?? []).map((field) => `${field.type} ${field.name}`);
      return `${name}(${members.join(',')})`;
    })
    .join('');
}
