import { base58 } from '@scure/base';
import canonicalize from 'canonicalize';

/** Thrown when a string is not in the expected encoding. */
export class InvalidEncodingError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'InvalidEncodingError';
  }
}

const HEX = /^[0-9a-fA-F]*$/;
// Padded base64 (RFC 4648 section 4). `base64ToBytes` re-encodes the result to reject non-zero trailing bits.
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

/** Encodes bytes as lower-case hex without `0x`. */
export function bytesToHex(bytes: Uint8Array): string {
  return view(bytes).toString('hex');
}

/** Encodes bytes as lower-case hex with `0x`. */
export function bytesTo0xHex(bytes: Uint8Array): `0x${string}` {
  return `0x${bytesToHex(bytes)}`;
}

/**
 * Converts hex without `0x`, two digits per byte, to bytes.
 *
 * @throws InvalidEncodingError
 */
export function hexToBytes(text: string): Uint8Array {
  if (!HEX.test(text)) throw new InvalidEncodingError('expected hex digits');
  if (text.length % 2 !== 0) {
    throw new InvalidEncodingError(`expected an even number of hex digits, got ${text.length}`);
  }
  return new Uint8Array(Buffer.from(text, 'hex'));
}

/**
 * Converts hex with or without `0x` to bytes.
 *
 * @throws InvalidEncodingError
 */
export function looseHexToBytes(text: string): Uint8Array {
  return hexToBytes(text.startsWith('0x') ? text.slice(2) : text);
}

/**
 * Converts hex with `0x` to bytes.
 *
 * @throws InvalidEncodingError
 */
export function prefixedHexToBytes(text: string): Uint8Array {
  if (!text.startsWith('0x')) throw new InvalidEncodingError('expected hex digits after `0x`');
  return hexToBytes(text.slice(2));
}

/** Encodes bytes as padded standard base64 (RFC 4648 section 4). */
export function bytesToBase64(bytes: Uint8Array): string {
  return view(bytes).toString('base64');
}

/**
 * Converts padded standard base64 to bytes. Rejects white space, base64url and non-zero trailing bits.
 *
 * @throws InvalidEncodingError
 */
export function base64ToBytes(text: string): Uint8Array {
  if (!BASE64.test(text) || text.length % 4 !== 0) {
    throw new InvalidEncodingError('expected padded standard base64');
  }
  const bytes = Buffer.from(text, 'base64');
  if (bytes.toString('base64') !== text) throw new InvalidEncodingError('expected canonical base64');
  return new Uint8Array(bytes);
}

/** Encodes bytes as base58 with the Bitcoin alphabet and no checksum. */
export function bytesToBase58(bytes: Uint8Array): string {
  return base58.encode(bytes);
}

/**
 * Converts base58 with the Bitcoin alphabet and no checksum to bytes.
 *
 * @throws InvalidEncodingError
 */
export function base58ToBytes(text: string): Uint8Array {
  // Base58 decoding takes quadratic time. Keys, signatures and block hashes all fit into 128 characters.
  if (text.length > 128)
    throw new InvalidEncodingError(`expected at most 128 base58 characters, got ${text.length}`);
  try {
    return base58.decode(text);
  } catch {
    throw new InvalidEncodingError('expected base58');
  }
}

export function utf8ToBytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** Decodes UTF-8. Returns undefined for bytes that are not well-formed UTF-8. */
export function bytesToUtf8(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

export function concatBytes(...parts: readonly Uint8Array[]): Uint8Array {
  const joined = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let offset = 0;
  for (const part of parts) {
    joined.set(part, offset);
    offset += part.length;
  }
  return joined;
}

/** Encodes an unsigned integer below 2^(8 × size) as `size` bytes, least significant byte first. */
export function littleEndian(value: bigint, size: number): Uint8Array {
  return Uint8Array.from({ length: size }, (_, index) => Number((value >> BigInt(8 * index)) & 0xffn));
}

/** Compares public bytes. Not constant time: do not use it for secrets. */
export function equalBytes(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && view(left).equals(right);
}

function view(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/**
 * Thrown when a value has no canonical JSON form: it contains a lone surrogate or a non-finite number, or is
 * undefined.
 */
export class NotCanonicalizableError extends Error {
  constructor(reason: string) {
    super(reason);
    this.name = 'NotCanonicalizableError';
  }
}

/**
 * Serializes `value` as canonical JSON: members sorted by UTF-16 code units, numbers in ECMAScript notation, no
 * white space. Members whose value is undefined are omitted, as by `JSON.stringify`. Source: RFC 8785.
 *
 * @throws NotCanonicalizableError
 */
export function canonicalJson(value: unknown): string {
  let text: string | undefined;
  try {
    text = canonicalize(value);
  } catch (error) {
    throw new NotCanonicalizableError(error instanceof Error ? error.message : 'expected a JSON value');
  }
  if (text === undefined) throw new NotCanonicalizableError('expected a JSON value');
  return text;
}

/** Returns CRC-16/XMODEM (polynomial 0x1021, initial value 0), the checksum of Stellar and TON addresses. */
export function crc16(bytes: Uint8Array): number {
  let crc = 0;
  for (const byte of bytes) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit += 1) {
      crc = (crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ 0x1021;
    }
    crc &= 0xffff;
  }
  return crc;
}
