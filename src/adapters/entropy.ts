import { createCipheriv, createHash, randomBytes } from 'node:crypto';
import type { Entropy } from '../ports/entropy.ts';

/** Random bytes from the operating system. */
export const systemEntropy: Entropy = {
  bytes: (length) => new Uint8Array(randomBytes(length)),
};

/** A deterministic byte stream for a seed. */
export interface SeededEntropy extends Entropy {
  /** Restarts the stream. */
  reset(): void;
}

/**
 * The ChaCha20 key stream (RFC 8439 §2.4) under the key SHA-256(seed): the same seed yields the same bytes.
 *
 * NOTE: never use it in production. The seed reveals every key and id derived from it.
 */
export function seededEntropy(seed: string): SeededEntropy {
  const key = createHash('sha256').update(seed, 'utf8').digest();
  // 4-byte block counter || 12-byte nonce, all zero: the key is used for a single stream only.
  const start = () => createCipheriv('chacha20', key, Buffer.alloc(16));
  let cipher = start();
  return {
    bytes: (length) => new Uint8Array(cipher.update(new Uint8Array(length))),
    reset: () => {
      cipher = start();
    },
  };
}
