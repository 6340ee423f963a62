import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { seededEntropy, systemEntropy } from '../../../src/adapters/runtime.ts';

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

test('the seeded stream is ChaCha20 under the digest of the seed', async () => {
  // An independent implementation.
  const { chacha20 } = await import('./chacha20-of-rfc8439.ts');
  const key = createHash('sha256').update('demo').digest();
  expect(hex(seededEntropy('demo').bytes(200))).toBe(hex(chacha20(key, 200)));
});

test('the stream does not depend on the sizes read, and continues at every position', () => {
  const [whole, parts] = [seededEntropy('demo'), seededEntropy('demo')];
  const cut = [3, 61, 1, 64, 71].map((length) => hex(parts.bytes(length))).join('');
  expect(cut).toBe(hex(whole.bytes(200)));
  for (const drawn of [0, 1, 63, 64, 65, 128, 130]) {
    const other = seededEntropy('another');
    other.goTo({ seed: 'demo', drawn });
    expect(hex(other.bytes(200 - drawn))).toBe(cut.slice(2 * drawn));
    expect(other.position()).toEqual({ seed: 'demo', drawn: 200 });
  }
  expect(hex(seededEntropy('demo ').bytes(200))).not.toBe(cut);
});

test('the system returns the requested number of bytes, always different', () => {
  expect(systemEntropy.bytes(0).length).toBe(0);
  expect(systemEntropy.bytes(32).length).toBe(32);
  expect(hex(systemEntropy.bytes(32))).not.toBe(hex(systemEntropy.bytes(32)));
});
