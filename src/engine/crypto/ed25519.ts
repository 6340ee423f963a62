import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import { concatBytes } from './encoding.ts';

// RFC 8410: PKCS#8 PrivateKeyInfo { version 0, id-Ed25519, OCTET STRING { OCTET STRING seed } } and
// SubjectPublicKeyInfo { id-Ed25519, BIT STRING key }.
const PKCS8_PREFIX = Uint8Array.from([
  0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
]);
const SPKI_PREFIX = Uint8Array.from([0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00]);

/** Returns the 32-byte public key of a 32-byte seed (RFC 8032 section 5.1.5). */
export function ed25519PublicKey(seed: Uint8Array): Uint8Array {
  const spki = createPublicKey(privateKeyOf(seed)).export({ format: 'der', type: 'spki' });
  return new Uint8Array(spki.subarray(SPKI_PREFIX.length));
}

/** Signs the message itself with PureEdDSA (RFC 8032 section 5.1.6). `seed`: 32 bytes. Returns 64 bytes. */
export function ed25519Sign(message: Uint8Array, seed: Uint8Array): Uint8Array {
  return new Uint8Array(sign(null, message, privateKeyOf(seed)));
}

/**
 * Returns whether `signature` (64 bytes) is valid for `message` under `publicKey` (32 bytes). Source: RFC 8032
 * section 5.1.7.
 */
export function ed25519Verify(signature: Uint8Array, message: Uint8Array, publicKey: Uint8Array): boolean {
  if (publicKey.length !== 32 || signature.length !== 64) return false;
  const key = createPublicKey({
    key: Buffer.from(concatBytes(SPKI_PREFIX, publicKey)),
    format: 'der',
    type: 'spki',
  });
  return verify(null, message, key, signature);
}

// The key is imported on every call, because a cached private KeyObject would still contain the seed after the caller
// wiped it.
function privateKeyOf(seed: Uint8Array): KeyObject {
  if (seed.length !== 32) throw new RangeError(`expected an ed25519 seed of 32 bytes, got ${seed.length}`);
  const der = Buffer.alloc(PKCS8_PREFIX.length + 32);
  try {
    der.set(PKCS8_PREFIX);
    der.set(seed, PKCS8_PREFIX.length);
    return createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  } finally {
    der.fill(0);
  }
}
