import assert from 'node:assert/strict';

/** What is sealed of a wallet. */
export interface WalletSecret {
  /** The key that signs, derived once so that signing needs no HD mathematics. */
  readonly privateKey: Uint8Array;
  /** BIP-39 entropy that the key came from; absent for a key without a phrase. */
  readonly entropy?: Uint8Array | undefined;
}

const LAYOUT = 1;
const HEAD_BYTES = 2;

/** 0x01 || length of the entropy (one byte, 0 = none) || entropy || private key */
export function encodeWalletSecret({ privateKey, entropy = new Uint8Array(0) }: WalletSecret): Uint8Array {
  const bytes = new Uint8Array(HEAD_BYTES + entropy.length + privateKey.length);
  bytes.set([LAYOUT, entropy.length]);
  bytes.set(entropy, HEAD_BYTES);
  bytes.set(privateKey, HEAD_BYTES + entropy.length);
  return bytes;
}

/** Views into `bytes`, wiped when they are wiped. */
export function decodeWalletSecret(bytes: Uint8Array): WalletSecret {
  assert(bytes[0] === LAYOUT && bytes[1] !== undefined, 'a sealed wallet secret has another layout');
  const keyAt = HEAD_BYTES + bytes[1];
  assert(bytes.length > keyAt, 'a sealed wallet secret is cut short');
  const privateKey = bytes.subarray(keyAt);
  return bytes[1] === 0 ? { privateKey } : { privateKey, entropy: bytes.subarray(HEAD_BYTES, keyAt) };
}
