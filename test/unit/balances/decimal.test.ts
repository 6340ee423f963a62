import fc from 'fast-check';
import { formatUnits, parseUnits } from 'viem';
import { expect, test } from 'vitest';
import {
  add,
  decimalText,
  divide,
  fixedText,
  fromRaw,
  multiply,
  readDecimal,
  round,
  toRaw,
} from '../../../src/engine/assets/decimal.ts';

const raw = fc.bigInt({ min: 0n, max: 2n ** 256n - 1n });
const decimals = fc.integer({ min: 0, max: 77 });

test('base units convert to the same text as viem, and back', () => {
  fc.assert(
    fc.property(raw, decimals, (amount, places) => {
      const text = decimalText(fromRaw(amount, places));
      expect(text).toBe(formatUnits(amount, places));
      const read = readDecimal(text);
      expect(read && toRaw(read, places)).toBe(amount);
      expect(parseUnits(text, places)).toBe(amount);
    }),
  );
});

test('a number with more decimals than the asset is not an amount of it', () => {
  const read = (text: string) => readDecimal(text) ?? expect.unreachable();
  expect(toRaw(read('1.5'), 6)).toBe(1_500_000n);
  expect(toRaw(read('0.0000001'), 6)).toBeUndefined();
  expect(toRaw(read('0.1000000000'), 6)).toBe(100_000n);
  expect(toRaw(read('9'.repeat(100)), 18)).toBe(BigInt('9'.repeat(100)) * 10n ** 18n);
});

test.each(['', '.5', '5.', '-1', '+1', '1e3', '1,5', ' 1', '0x10', '١'])('`%s` is not a number', (text) => {
  expect(readDecimal(text)).toBeUndefined();
});

test('sums and products equal those of the underlying integers', () => {
  fc.assert(
    fc.property(raw, raw, decimals, decimals, (a, b, placesOfA, placesOfB) => {
      // a / 10^m + b / 10^n = (a 10^n + b 10^m) / 10^(m + n)
      const sum = add(fromRaw(a, placesOfA), fromRaw(b, placesOfB));
      const common = a * 10n ** BigInt(placesOfB) + b * 10n ** BigInt(placesOfA);
      expect(decimalText(sum)).toBe(formatUnits(common, placesOfA + placesOfB));
      const product = multiply(fromRaw(a, placesOfA), fromRaw(b, placesOfB));
      expect(decimalText(product)).toBe(formatUnits(a * b, placesOfA + placesOfB));
    }),
  );
});

test('rounding is half up and never off by more than half of the last place', () => {
  expect(fixedText(round(fromRaw(2_345n, 3), 2))).toBe('2.35');
  expect(fixedText(round(fromRaw(2_344n, 3), 2))).toBe('2.34');
  expect(fixedText(round(fromRaw(999n, 3), 2))).toBe('1.00');
  expect(fixedText(round(fromRaw(5n, 0), 2))).toBe('5.00');
  fc.assert(
    fc.property(raw, fc.integer({ min: 3, max: 40 }), (amount, places) => {
      const step = 10n ** BigInt(places - 2);
      const off = round(fromRaw(amount, places), 2).digits * step - amount;
      expect(2n * off <= step && 2n * off > -step).toBe(true);
    }),
  );
});

test('a quotient times its divisor equals the dividend within half of the last place', () => {
  fc.assert(
    fc.property(raw, fc.bigInt({ min: 1n, max: 10n ** 30n }), decimals, (a, b, places) => {
      const quotient = divide(fromRaw(a, places), fromRaw(b, 4), 18);
      // |q - a/b| <= 10^-18 / 2, over the common denominator 2 b 10^(18 + places)
      const off = quotient.digits * b * 10n ** BigInt(places) - a * 10n ** (4n + 18n);
      const half = b * 10n ** BigInt(places);
      expect(2n * off <= half && 2n * off >= -half).toBe(true);
    }),
  );
});

test('numbers longer than any amount are not read', () => {
  expect(readDecimal('9'.repeat(1_000))).toEqual({ digits: 10n ** 1_000n - 1n, scale: 0 });
  expect(readDecimal('9'.repeat(1_001))).toBeUndefined();
});
