import fc from 'fast-check';
import { expect, test } from 'vitest';
import { lookupKey } from '../../../src/domain/base/lookup-keys/lookup-key.ts';

test('an ordinary text is its own key', () => {
  for (const text of ['alice@example.com', '+1 555 555 0100', 'é', '', 'x'.repeat(512)]) {
    expect(lookupKey(text)).toBe(text);
  }
});

test('a text that does not fit an index or a column has a digest as key', () => {
  for (const text of [
    'x'.repeat(513),
    'é'.repeat(257),
    'a\0',
    '\ud800',
    'sha256:',
    `sha256:${'0'.repeat(64)}`,
  ]) {
    expect(lookupKey(text)).toMatch(/^sha256:[0-9a-f]{64}$/);
  }
});

test('different texts have different keys that fit a text column', () => {
  const text = fc.oneof(
    fc.string({ unit: fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit)) }),
    fc.string({ minLength: 500, maxLength: 1024 }),
    fc.string().map((rest) => `sha256:${rest}`),
    fc.string().map(lookupKey),
  );
  fc.assert(
    fc.property(text, text, (left, right) => {
      expect(lookupKey(left) === lookupKey(right)).toBe(left === right);
      const key = lookupKey(left);
      expect(key.isWellFormed() && !key.includes('\0') && Buffer.byteLength(key) <= 512).toBe(true);
    }),
    { numRuns: 2000 },
  );
});
