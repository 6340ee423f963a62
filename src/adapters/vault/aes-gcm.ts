import {
  type CipherGCMTypes,
  createCipheriv,
  createDecipheriv,
  createSecretKey,
  KeyObject,
} from 'node:crypto';
import type { Entropy } from '../../ports/entropy.ts';

const CIPHER: CipherGCMTypes = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** AES-256-GCM under a random 96-bit nonce (NIST SP 800-38D §8.2.2): nonce || ciphertext || tag. */
export function sealAesGcm(
  key: KeyObject | Uint8Array,
  plain: Uint8Array,
  associated: Uint8Array,
  entropy: Entropy,
): Buffer {
  const nonce = entropy.bytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, importKey(key), nonce);
  cipher.setAAD(associated);
  return Buffer.concat([nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
}

/**
 * Opens bytes sealed by `sealAesGcm`; the caller wipes the result. Undefined when the key, data or bytes do not match.
 */
export function openAesGcm(
  key: KeyObject | Uint8Array,
  sealed: Uint8Array,
  associated: Uint8Array,
): Buffer | undefined {
  if (sealed.length < NONCE_BYTES + TAG_BYTES) return undefined;
  const tagAt = sealed.length - TAG_BYTES;
  const decipher = createDecipheriv(CIPHER, importKey(key), sealed.subarray(0, NONCE_BYTES), {
    authTagLength: TAG_BYTES,
  });
  decipher.setAAD(associated);
  decipher.setAuthTag(sealed.subarray(tagAt));
  const plain = decipher.update(sealed.subarray(NONCE_BYTES, tagAt));
  try {
    decipher.final();
    return plain;
  } catch {
    plain.fill(0);
    return undefined;
  }
}

// NOTE: creating a cipher from raw key bytes takes four times as long as importing the key first.
function importKey(key: KeyObject | Uint8Array): KeyObject {
  return key instanceof KeyObject ? key : createSecretKey(key);
}
