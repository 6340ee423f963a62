import assert from 'node:assert/strict';

/** The sealed content of a wallet. */
export interface WalletSecret {
  /** The signing key, stored in derived form so that signing needs no key derivation. */
  readonly privateKey: Uint8Array;
  /** The BIP-39 entropy of the key; absent for a key without a phrase. */
  readonly entropy?: Uint8Array | undefined;
}

const LAYOUT = 1;
const HEAD_BYTES = 2;
/** On every chain. */
const KEY_BYTES = 32;

/** 0x01 || length of the entropy (one byte, 0 = none) || entropy || private key */
export function encodeWalletSecret({ privateKey, entropy = new Uint8Array(0) }: WalletSecret): Uint8Array {
  const bytes = new Uint8Array(HEAD_BYTES + entropy.length + privateKey.length);
  bytes.set([LAYOUT, entropy.length]);
  bytes.set(entropy, HEAD_BYTES);
  bytes.set(privateKey, HEAD_BYTES + entropy.length);
  return bytes;
}

/** The fields are views into `bytes` and are wiped with it. */
export function decodeWalletSecret(bytes: Uint8Array): WalletSecret {
  assert(bytes[0] === LAYOUT && bytes[1] !== undefined, 'a sealed wallet secret has another layout');
  const keyAt = HEAD_BYTES + bytes[1];
  // INVARIANT: no other secret of a vault is read as one, such as the 32 bytes of a key that decrypts an import.
  assert(bytes.length === keyAt + KEY_BYTES, 'a sealed wallet secret has another length');
  const privateKey = bytes.subarray(keyAt);
  return bytes[1] === 0 ? { privateKey } : { privateKey, entropy: bytes.subarray(HEAD_BYTES, keyAt) };
}
