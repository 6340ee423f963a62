import { createCipheriv, createHash, randomBytes } from 'node:crypto';
import type { Entropy } from '../ports/entropy.ts';

/** The operating system's randomness. */
export const systemEntropy: Entropy = {
  bytes: (length) => new Uint8Array(randomBytes(length)),
};

/** A stream of bytes that is the same for the same seed, and can be started again. */
export interface SeededEntropy extends Entropy {
  reset(): void;
}

/**
 * The ChaCha20 key stream (RFC 8439 §2.4) under the key SHA-256(seed): the same seed gives the same bytes.
 *
 * NOTE: never for production. Whoever knows the seed knows every key and id drawn from it.
 */
export function seededEntropy(seed: string): SeededEntropy {
  const key = createHash('sha256').update(seed, 'utf8').digest();
  // 4-byte block counter || 12-byte nonce, all zero: the key is used for this one stream only.
  const start = () => createCipheriv('chacha20', key, Buffer.alloc(16));
  let cipher = start();
  return {
    bytes: (length) => new Uint8Array(cipher.update(new Uint8Array(length))),
    reset: () => {
      cipher = start();
    },
  };
}
