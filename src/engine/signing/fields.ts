import {
  InvalidEncodingError,
  looseHexToBytes,
  prefixedHexToBytes,
  utf8ToBytes,
} from '../crypto/encoding.ts';
import { InvalidFieldError } from './signing-errors.ts';

const ADDRESS = /^0x[0-9a-fA-F]{40}$/;
const HEX_NUMBER = /^0x[0-9a-fA-F]+$/;

/** The API's `Quantity`: a JSON integer or a 0x hex string. */
export type Quantity = number | string;

/**
 * Parses a quantity from 0 to 2^bits - 1.
 *
 * @throws InvalidFieldError
 */
export function parseQuantity(value: Quantity, field: string, bits: number): bigint {
  const parsed = quantityOrUndefined(value);
  if (parsed === undefined) {
    throw new InvalidFieldError(field, `expected an integer or a 0x hex number, got \`${shorten(value)}\``);
  }
  if (parsed < 0n || parsed >> BigInt(bits) !== 0n) {
    throw new InvalidFieldError(
      field,
      `expected a number from 0 to 2^${bits} - 1, got \`${shorten(value)}\``,
    );
  }
  return parsed;
}

/**
 * Parses a quantity that a JSON number can represent exactly: 0 to 2^53 - 1.
 *
 * @throws InvalidFieldError
 */
export function parseSafeInteger(value: Quantity, field: string): number {
  return Number(parseQuantity(value, field, 53));
}

function quantityOrUndefined(value: Quantity): bigint | undefined {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : undefined;
  return HEX_NUMBER.test(value) ? BigInt(value) : undefined;
}

/**
 * Validates 0x hex with an even number of digits and returns it in lower case.
 *
 * @throws InvalidFieldError
 */
export function parseHexText(value: string, field: string): `0x${string}` {
  decodeField(field, () => prefixedHexToBytes(value));
  return value.toLowerCase() as `0x${string}`;
}

/**
 * Decodes 0x hex. With `size`, requires exactly that many bytes.
 *
 * @throws InvalidFieldError
 */
export function parseHexBytes(value: string, field: string, size?: number): Uint8Array {
  const bytes = decodeField(field, () => prefixedHexToBytes(value));
  if (size !== undefined && bytes.length !== size) {
    throw new InvalidFieldError(field, `expected ${size} bytes of hex, got ${bytes.length}`);
  }
  return bytes;
}

/**
 * Returns an EVM address in lower case. Does not verify its EIP-55 checksum.
 *
 * @throws InvalidFieldError
 */
export function parseEvmAddress(value: string, field: string): `0x${string}` {
  if (!ADDRESS.test(value)) {
    throw new InvalidFieldError(field, `expected 0x and 40 hex digits, got \`${shorten(value)}\``);
  }
  return value.toLowerCase() as `0x${string}`;
}

/**
 * Returns the bytes of a message that is given as text, or as hex with or without 0x.
 *
 * @throws InvalidFieldError, also for text with lone surrogates, which UTF-8 cannot encode.
 */
export function parseMessage(message: string, encoding: 'utf-8' | 'hex', field: string): Uint8Array {
  if (encoding === 'hex') return decodeField(field, () => looseHexToBytes(message));
  if (!message.isWellFormed()) throw new InvalidFieldError(field, 'expected text without lone surrogates');
  return utf8ToBytes(message);
}

/** Calls `decode` and converts its InvalidEncodingError to an InvalidFieldError for `field`. */
export function decodeField<T>(field: string, decode: () => T): T {
  try {
    return decode();
  } catch (error) {
    if (error instanceof InvalidEncodingError) throw new InvalidFieldError(field, error.message);
    throw error;
  }
}

function shorten(value: Quantity): string {
  const text = String(value);
  return text.length <= 80 ? text : `${text.slice(0, 77)}...`;
}
