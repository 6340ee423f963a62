import { keccak_256 } from '@noble/hashes/sha3.js';
import { concatBytes, utf8ToBytes } from '../../crypto/encoding.ts';
import { parseHexBytes, parseMessage } from '../fields.ts';
import type { VerifyingAccount } from './light-account.ts';
import { signDigestHex } from './signature.ts';

export interface PersonalSignParams {
  readonly message: string;
  /** `hex` accepts an optional 0x. */
  readonly encoding: 'utf-8' | 'hex';
  /** Added by the server: the smart wallet that verifies the signature in place of the key. */
  readonly smart_account?: VerifyingAccount | undefined;
}

/** The EIP-191 version 0x45 digest of a message. */
export function hashPersonalMessage(message: Uint8Array): Uint8Array {
  // keccak256(0x19 || "Ethereum Signed Message:\n" || decimal length || message)
  const head = utf8ToBytes(`\x19Ethereum Signed Message:\n${message.length}`);
  return keccak_256(concatBytes(head, message));
}

/** `personal_sign`: 0x hex of r || s || v (27/28). Throws InvalidFieldError. Source: EIP-191. */
export function signPersonalMessage(secret: Uint8Array, params: PersonalSignParams): `0x${string}` {
  const message = parseMessage(params.message, params.encoding, '/message');
  return signDigestHex(hashPersonalMessage(message), secret);
}

/**
 * `secp256k1_sign`: signs the given digest as is, a shorter number padded with zeros on the left to 32 bytes; 0x hex of
 * r || s || v (27/28). Throws InvalidFieldError.
 */
export function signSecp256k1Digest(secret: Uint8Array, { hash }: { readonly hash: string }): `0x${string}` {
  const isNumber = /^0x[0-9a-f]{1,64}$/i.test(hash);
  const digest = isNumber ? `0x${hash.slice(2).padStart(64, '0')}` : hash;
  return signDigestHex(parseHexBytes(digest, '/hash', 32), secret);
}
