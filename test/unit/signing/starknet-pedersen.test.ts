import * as stark from '@scure/starknet';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { pedersen, pedersenFold } from '../../../src/engine/signing/starknet.ts';

const order = stark.Point.Fp.ORDER;
const element = fc.oneof(
  fc.bigInt({ min: 0n, max: order - 1n }),
  // The ends of the field, and around the boundary between the low and the high bits.
  fc.constantFrom(0n, 1n, 15n, 16n, 2n ** 248n - 1n, 2n ** 248n, 2n ** 251n, order - 1n),
);

test('@scure/starknet, which adds bit by bit, has the same hashes', () => {
  fc.assert(
    fc.property(element, element, (x, y) => {
      expect(pedersen(x, y)).toBe(BigInt(stark.pedersen(x, y)));
    }),
    { numRuns: 30 },
  );
});

test('a fold is a chain of hashes', () => {
  const expected = [7n, 8n, 9n].reduce((x, y) => BigInt(stark.pedersen(x, y)), 3n);
  expect(pedersenFold([7n, 8n, 9n], 3n)).toBe(expected);
  expect(pedersenFold([], 3n)).toBe(3n);
});

test('elements outside the field are refused', () => {
  for (const value of [-1n, order]) {
    expect(() => pedersen(value, 0n)).toThrow('element of the field');
    expect(() => pedersen(0n, value)).toThrow('element of the field');
  }
});
