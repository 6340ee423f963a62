import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  exceedsInput,
  type Rate,
  type RateTerms,
  rateOfInput,
  rateOfOutput,
  rawAmountWorth,
} from '../../../src/sandbox/simulated/exchange/rates.ts';

const usdc = { price: '1', decimals: 6 };
const ether = { price: '3000', decimals: 18 };
const pol = { price: '0.5', decimals: 18 };
const trx = { price: '0.25', decimals: 6 };

test.each([
  ['the same asset: 0.12 %', usdc, usdc, 0, 100_000_000n, 99_880_000n, 120_000n, 0n],
  ['dear for cheap', ether, usdc, 0, 10n ** 18n, 2_996_400_000n, 12n * 10n ** 14n, 0n],
  ['cheap for dear', usdc, ether, 0, 3_000_000_000n, 998_800_000_000_000_000n, 3_600_000n, 0n],
  ['prices with a fraction', pol, trx, 0, 10n ** 18n, 1_997_600n, 12n * 10n ** 14n, 0n],
  ['the app’s share beside', usdc, usdc, 100, 100_000_000n, 98_880_000n, 120_000n, 1_000_000n],
  // 7 * 0.9988 = 6.99; the remainder goes to the relayer.
  ['a few units', usdc, usdc, 0, 7n, 6n, 1n, 0n],
  ['a fee below a unit', usdc, usdc, 1, 7n, 6n, 1n, 0n],
])('%s', (_, source, destination, appFeeBps, rawInput, rawOutput, relayerFee, appFee) => {
  const terms = { source, destination, appFeeBps };
  expect(rateOfInput(terms, rawInput)).toEqual({ rawInput, rawOutput, relayerFee, appFee });
});

test('an exchange that would deliver nothing has no rate', () => {
  const terms = { source: usdc, destination: usdc, appFeeBps: 0 };
  expect(rateOfInput(terms, 1n)).toBeUndefined();
  expect(rateOfInput({ ...terms, source: { ...ether, price: '0.000001' } }, 10n ** 6n)).toBeUndefined();
  expect(exceedsInput(9_987)).toBe(false);
  expect(exceedsInput(9_988)).toBe(true);
  expect(rateOfInput({ ...terms, appFeeBps: 9_987 }, 10_000n)?.rawOutput).toBe(1n);
});

test('an inventory is the amount worth a number of dollars, rounded down', () => {
  expect(rawAmountWorth(1_000_000n, usdc)).toBe(1_000_000_000_000n);
  expect(rawAmountWorth(1_000_000n, ether)).toBe(333_333_333_333_333_333_333n);
  expect(rawAmountWorth(1_000_000n, pol)).toBe(2_000_000n * 10n ** 18n);
});

describe('for any exchange', () => {
  const side = fc.record({
    price: fc
      .tuple(fc.bigInt(0n, 1_000_000n), fc.stringMatching(/^\d{1,6}$/))
      .map(([whole, fraction]) => `${whole}.${fraction}`)
      .filter((price) => Number(price) > 0),
    decimals: fc.integer({ min: 0, max: 24 }),
  });
  const terms = fc.record({ source: side, destination: side, appFeeBps: fc.integer({ min: 0, max: 9_987 }) });
  const raw = fc.oneof(fc.bigInt(1n, 100n), fc.bigInt(1n, 10n ** 12n), fc.bigInt(1n, 10n ** 40n));
  const runs = { numRuns: 2_000, seed: 9 };

  // An independent calculation of value in units of 10^-30 dollars, as exact fractions with one denominator.
  const unit = 10n ** 30n;
  function worth(amount: bigint, { price, decimals }: RateTerms['source']): bigint {
    const [whole, fraction = ''] = price.split('.');
    const microPrice = BigInt(`${whole}${fraction.padEnd(6, '0')}`);
    // amount / 10^decimals * microPrice / 10^6, exact since decimals + 6 <= 30
    return (amount * microPrice * unit) / 10n ** BigInt(decimals + 6);
  }
  const isSound = (given: RateTerms, rate: Rate): void => {
    const { rawInput, rawOutput, relayerFee, appFee } = rate;
    expect(
      worth(rawOutput, given.destination) + worth(relayerFee + appFee, given.source),
    ).toBeLessThanOrEqual(worth(rawInput, given.source));
    // Neither fee is below its share, except for the last unit of the app's.
    expect(relayerFee * 10_000n).toBeGreaterThanOrEqual(rawInput * 12n);
    expect(appFee).toBe((rawInput * BigInt(given.appFeeBps)) / 10_000n);
    expect(rawOutput).toBeGreaterThan(0n);
  };

  test('output and fees are never worth more than the input', () => {
    let delivered = 0;
    fc.assert(
      fc.property(terms, raw, (given, rawInput) => {
        const rate = rateOfInput(given, rawInput);
        if (rate === undefined) return;
        delivered += 1;
        expect(rate.rawInput).toBe(rawInput);
        isSound(given, rate);
      }),
      runs,
    );
    expect(delivered).toBeGreaterThan(500);
  });

  test('more input never yields less output', () => {
    fc.assert(
      fc.property(terms, raw, raw, (given, rawInput, more) => {
        const [less, greater] = [rateOfInput(given, rawInput), rateOfInput(given, rawInput + more)];
        expect(greater?.rawOutput ?? 0n).toBeGreaterThanOrEqual(less?.rawOutput ?? 0n);
      }),
      runs,
    );
  });

  test('the input for an output is the smallest sufficient one', () => {
    fc.assert(
      fc.property(terms, raw, (given, rawOutput) => {
        const rate = rateOfOutput(given, rawOutput);
        expect(rate.rawOutput).toBe(rawOutput);
        isSound(given, rate);
        expect(rateOfInput(given, rate.rawInput)?.rawOutput ?? 0n).toBeGreaterThanOrEqual(rawOutput);
        expect(rateOfInput(given, rate.rawInput - 1n)?.rawOutput ?? 0n).toBeLessThan(rawOutput);
      }),
      runs,
    );
  });
});
