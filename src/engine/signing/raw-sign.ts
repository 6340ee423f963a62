import { blake2b } from '@noble/hashes/blake2.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { keccak_256 } from '@noble/hashes/sha3.js';
import { base64ToBytes, prefixedHexToBytes } from '../crypto/encoding.ts';
import type { CurveType } from './chain-signer.ts';
import { decodeField, parseMessage } from './fields.ts';

/** `raw_sign` params: a hash or message to sign as is, or bytes to hash first. */
export type RawSignParams =
  | { readonly hash: string }
  | {
      readonly bytes: string;
      /** `hex` accepts an optional 0x. */
      readonly encoding: 'utf-8' | 'hex' | 'base64';
      readonly hash_function: 'keccak256' | 'sha256' | 'blake2b256';
    };

const HASH_FUNCTIONS = {
  keccak256: (bytes: Uint8Array) => keccak_256(bytes),
  sha256: (bytes: Uint8Array) => sha256(bytes),
  blake2b256: (bytes: Uint8Array) => blake2b(bytes, { dkLen: 32 }),
} as const;

/**
 * Decodes `raw_sign` params. `message`: the caller's bytes before hashing, which policies decode; undefined when only a
 * hash was given. `payload`: the bytes to sign. Starknet felts may have an odd number of digits.
 * Throws InvalidFieldError.
 */
export function decodeRawSign(
  params: RawSignParams,
  curve?: CurveType,
): {
  message: Uint8Array | undefined;
  payload: Uint8Array;
} {
  if ('hash' in params) {
    const isOddFelt = curve === 'starknet' && params.hash.length % 2 === 1;
    const hash = isOddFelt ? params.hash.replace(/^0x/u, '0x0') : params.hash;
    return { message: undefined, payload: decodeField('/hash', () => prefixedHexToBytes(hash)) };
  }
  const { bytes, encoding } = params;
  const message =
    encoding === 'base64'
      ? decodeField('/bytes', () => base64ToBytes(bytes))
      : parseMessage(bytes, encoding, '/bytes');
  return { message, payload: HASH_FUNCTIONS[params.hash_function](message) };
}
