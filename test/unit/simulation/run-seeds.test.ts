import { expect, test } from 'vitest';
import { runSeeds } from '../../simulation/runs/run-seeds.ts';

const seeds = { from: 3, count: 4, steps: 1, endMs: Number.POSITIVE_INFINITY, onProgress: () => undefined };

test('several processes run the same seeds to the same end as one', { timeout: 120_000 }, async () => {
  const [alone, shared] = [
    await runSeeds({ ...seeds, workers: 1 }),
    await runSeeds({ ...seeds, workers: 2 }),
  ];
  expect(alone.size).toBe(4);
  expect(alone.records).toBeGreaterThan(0);
  expect(shared).toEqual(alone);
});
