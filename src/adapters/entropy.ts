import { createCipheriv, createHash, randomBytes } from 'node:crypto';
import type { Entropy } from '../ports/entropy.ts';

/** Random bytes from the operating system. */
export const systemEntropy: Entropy = {
  bytes: (length) => new Uint8Array(randomBytes(length)),
};

/** What the next bytes of a deterministic stream depend on. */
export interface EntropyPosition {
  readonly seed: string;
  /** The number of bytes before them. */
  readonly drawn: number;
}

/** A deterministic byte stream for a seed. */
export interface SeededEntropy extends Entropy {
  position(): EntropyPosition;
  /** Continues at a position, which may be one of another seed. */
  goTo(position: EntropyPosition): void;
  /** The bytes after the next `skipped` ones. They are still drawn later. */
  peek(skipped: number, length: number): Uint8Array;
}

/** ChaCha20 makes 64 bytes of key stream from each value of its 32-bit counter. */
const BLOCK_BYTES = 64;

/**
 * The ChaCha20 key stream (RFC 8439 §2.4) under the key SHA-256(seed): the same seed yields the same bytes.
 *
 * NOTE: never use it in production. The seed reveals every key and id derived from it.
 */
export function seededEntropy(seed: string): SeededEntropy {
  let position = { seed, drawn: 0 };
  let cipher = cipherAt(position);
  return {
    bytes(length) {
      position.drawn += length;
      return new Uint8Array(cipher.update(new Uint8Array(length)));
    },
    position: () => ({ ...position }),
    goTo(wanted) {
      position = { ...wanted };
      cipher = cipherAt(position);
    },
    peek(skipped, length) {
      const later = cipherAt({ seed: position.seed, drawn: position.drawn + skipped });
      return new Uint8Array(later.update(new Uint8Array(length)));
    },
  };
}

function cipherAt({ seed, drawn }: EntropyPosition) {
  const key = createHash('sha256').update(seed, 'utf8').digest();
  // 4-byte block counter || 12-byte nonce, all zero: the key is used for a single stream only.
  const start = Buffer.alloc(16);
  start.writeUInt32LE(Math.floor(drawn / BLOCK_BYTES));
  const cipher = createCipheriv('chacha20', key, start);
  cipher.update(new Uint8Array(drawn % BLOCK_BYTES));
  return cipher;
}
