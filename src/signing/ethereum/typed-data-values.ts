import { keccak_256 } from '@noble/hashes/sha3.js';
import { hexToBytes, utf8ToBytes } from '../../crypto/encoding.ts';
import { InvalidTypedDataError } from '../signing-errors.ts';

const ELEMENTARY = /^(?:(u?int)(\d{0,3})|bytes(\d{0,2})|address|bool|string)$/;
const INTEGER_TEXT = /^(?:-?\d{1,78}|0x[0-9a-fA-F]{1,64})$/;
const HEX_TEXT = /^0x[0-9a-fA-F]*$/;
const ADDRESS = /^0x[0-9a-fA-F]{40}$/;

/** Whether the name is an atomic or dynamic type of EIP-712 (`uint256`, `bytes32`, `string`, …). */
export function isElementaryType(type: string): boolean {
  const match = ELEMENTARY.exec(type);
  if (match === null) return false;
  const [, integer, bits, size] = match;
  if (integer !== undefined) return isIntegerSize(bits ?? '');
  return size === undefined || size === '' || isByteSize(size);
}

/**
 * Encodes one value of an elementary type as the 32-byte word of encodeData (EIP-712). Throws InvalidTypedDataError at
 * `pointer`.
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

// Two's complement over 256 bits. Large integers come as decimal or 0x hex strings.
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
