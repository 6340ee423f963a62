import { expect, test } from 'vitest';
import { seededEntropy } from '../../../src/adapters/entropy.ts';
import {
  generateWalletKey,
  generateWalletKeys,
} from '../../../src/domain/wallets/wallets/generate-wallet-key.ts';

test('many keys are derived a few at a time, in the order in which they are drawn', async () => {
  const entropy = seededEntropy('keys');
  let draws = 0;
  const counted = {
    ...entropy,
    bytes: (length: number) => {
      draws += 1;
      return entropy.bytes(length);
    },
  };
  const types = Array.from({ length: 25 }, (_, index) => (['ethereum', 'tron'] as const)[index % 2]!);
  const generating = generateWalletKeys(types, counted);
  // Each key costs milliseconds; what has not been drawn has not begun.
  expect(draws).toBe(10);
  const keys = await generating;
  const alone = seededEntropy('keys');
  const expected = [];
  for (const type of types) expected.push((await generateWalletKey(type, alone)).address);
  expect(keys.map(({ address }) => address)).toEqual(expected);
});
