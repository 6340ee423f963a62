import { expect, test } from 'vitest';
import { regressions } from './regressions.ts';
import { simulate } from './simulate.ts';

// The whole server, its chains, its clock and its disk from one seed. The long form is `npm run simulate`.
const isLong = process.env.TEST_LONG === '1';
const seeds = Array.from({ length: isLong ? 200 : 2 }, (_, index) => String(index + 1));
const steps = 200;

test(`${seeds.length} seeds of ${steps} steps keep every invariant`, { timeout: 1_200_000 }, async () => {
  const reached = new Set<string>();
  for (const seed of seeds) {
    const { figures } = await simulate(seed, steps);
    for (const outcome of Object.keys(figures.outcomes)) reached.add(outcome);
  }
  expect([...reached]).toEqual(
    expect.arrayContaining([
      ...['transferFromWallet done', 'transferFromWallet refused', 'transferFromWallet unknown'],
      ...['walletRpc done', 'walletRpc refused', 'createWallet done', 'crash'],
    ]),
  );
});

test('the same seed gives the same log', { timeout: 60_000 }, async () => {
  const [first, second] = [await simulate('twice', 30), await simulate('twice', 30)];
  expect(second).toEqual(first);
});

/** Otherwise one of those that found the same. */
const repeated = regressions.filter(
  ({ found }, index) => isLong || index === regressions.findIndex((each) => each.found === found),
);

test.each(repeated)('seed $seed, which found: $found', { timeout: 60_000 }, async ({ seed, steps }) => {
  await simulate(seed, steps);
});
