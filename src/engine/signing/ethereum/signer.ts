import assert from 'node:assert/strict';
import { keccak_256 } from '@noble/hashes/sha3.js';
import * as Rlp from 'ox/Rlp';
import { bytesTo0xHex, bytesToHex, concatBytes, hexToBytes, utf8ToBytes } from '../../crypto/encoding.ts';
import { type EcdsaSignature, ecBackend } from '../../crypto/secp256k1.ts';
import { type ChainSigner, compressedKey, requireDigest } from '../chain-signer.ts';
import { parseHexBytes, parseMessage } from '../fields.ts';
import type { VerifyingAccount } from './smart-accounts.ts';

/** Returns the EIP-55 address of a 32-byte secret. */
export function ethereumAddress(secret: Uint8Array): string {
  return checksumAddress(bytesToHex(evmAccount(secret)));
}

/** Returns the 20-byte account of a secret: keccak256(X || Y)[12..32]. TRON uses the same accounts. */
export function evmAccount(secret: Uint8Array): Uint8Array {
  const publicKey = ecBackend.publicKey(secret, false);
  return keccak_256(publicKey.subarray(1)).subarray(12);
}

/** Converts 40 hex digits without 0x to an address with the EIP-55 case. */
export function checksumAddress(accountHex: string): string {
  const lower = accountHex.toLowerCase();
  const hash = bytesToHex(keccak_256(utf8ToBytes(lower)));
  let address = '0x';
  for (let index = 0; index < 40; index += 1) {
    const digit = lower.charAt(index);
    // Upper case if the same digit of keccak256(lower-case text) is 8 or more.
    address += hash.charAt(index) >= '8' ? digit.toUpperCase() : digit;
  }
  return address;
}

/**
 * Returns the address of the smart contract that a transaction creates: keccak256(rlp([sender, nonce]))[12..32], 0x
 * hex.
 */
export function contractAddress(sender: string, nonce: number): string {
  const digits = nonce.toString(16);
  const nonceHex = nonce === 0 ? '' : digits.padStart(digits.length + (digits.length % 2), '0');
  const encoded = Rlp.fromHex([sender.toLowerCase() as `0x${string}`, `0x${nonceHex}`]);
  return bytesTo0xHex(keccak_256(hexToBytes(encoded.slice(2))).subarray(12));
}

/** Signs a 32-byte digest; returns r || s || v with v = 27 + recovery id, 65 bytes as 0x hex. */
export function signDigestHex(digest: Uint8Array, secret: Uint8Array): `0x${string}` {
  return bytesTo0xHex(recoverableBytes(ecBackend.sign(digest, secret)));
}

/** Returns r || s || (27 + recovery id), 65 bytes. */
export function recoverableBytes({ compact, recoveryId }: EcdsaSignature): Uint8Array {
  return concatBytes(compact, Uint8Array.of(27 + recoveryId));
}

/** Returns the signature as a tuple for EVM transactions and authorizations. r and s are 32 bytes of 0x hex. */
export function signatureTuple({ compact, recoveryId }: EcdsaSignature): {
  r: `0x${string}`;
  s: `0x${string}`;
  yParity: 0 | 1;
} {
  // A recovery id of 2 or 3 requires an x coordinate above the curve's order (probability 2^-128).
  assert(recoveryId === 0 || recoveryId === 1);
  return {
    r: bytesTo0xHex(compact.subarray(0, 32)),
    s: bytesTo0xHex(compact.subarray(32)),
    yParity: recoveryId,
  };
}

/** Returns the signature of an envelope as 0x hex of r || s || parity (0 or 1), or undefined if it is unsigned. */
export function signatureHex(signature: {
  readonly r?: string | undefined;
  readonly s?: string | undefined;
  readonly yParity?: number | undefined;
}): string | undefined {
  const { r, s, yParity } = signature;
  if (r === undefined || s === undefined) return undefined;
  return `0x${r.slice(2).padStart(64, '0')}${s.slice(2).padStart(64, '0')}0${yParity ?? 0}`;
}

export interface PersonalSignParams {
  readonly message: string;
  /** `hex` accepts an optional 0x. */
  readonly encoding: 'utf-8' | 'hex';
  /**
   * The smart wallet that verifies the signature. Without it, the signature is valid for the key itself. The server
   * adds this field.
   */
  readonly smart_account?: VerifyingAccount | undefined;
}

/** Returns the EIP-191 version 0x45 digest of a message. */
export function hashPersonalMessage(message: Uint8Array): Uint8Array {
  // keccak256(0x19 || "Ethereum Signed Message:\n" || decimal length || message)
  const head = utf8ToBytes(`\x19Ethereum Signed Message:\n${message.length}`);
  return keccak_256(concatBytes(head, message));
}

/**
 * Executes `personal_sign`: returns 0x hex of r || s || v (27/28). Source: EIP-191.
 *
 * @throws InvalidFieldError
 */
export function signPersonalMessage(secret: Uint8Array, params: PersonalSignParams): `0x${string}` {
  const message = parseMessage(params.message, params.encoding, '/message');
  return signDigestHex(hashPersonalMessage(message), secret);
}

/**
 * Executes `secp256k1_sign`: signs the given digest directly. A shorter number is padded with zeros on the left to 32
 * bytes. Returns 0x hex of r || s || v (27/28).
 *
 * @throws InvalidFieldError
 */
export function signSecp256k1Digest(secret: Uint8Array, { hash }: { readonly hash: string }): `0x${string}` {
  const isNumber = /^0x[0-9a-f]{1,64}$/i.test(hash);
  const digest = isNumber ? `0x${hash.slice(2).padStart(64, '0')}` : hash;
  return signDigestHex(parseHexBytes(digest, '/hash', 32), secret);
}

/** Signs for EVM accounts. Addresses have EIP-55 checksums. */
export const ethereumSigner: ChainSigner = {
  walletKeys: (secret) => ({
    address: ethereumAddress(secret),
    publicKey: bytesToHex(compressedKey(secret)),
  }),
  // CHOICE: r || s || v, the format that `secp256k1_sign` returns.
  signPayload: (secret, payload) => recoverableBytes(ecBackend.sign(requireDigest(payload), secret)),
};
