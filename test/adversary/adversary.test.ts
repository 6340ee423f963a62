import { expect, test } from 'vitest';
import { freshPostgres } from '../support/postgres/borrow-database.ts';
import { runAdversary } from './adversary.ts';

// The short form of `npm run adversary`: each attacker, each kind of case, a few seconds.

test('an honest client is not harmed by five attackers at once', async () => {
  const seed = String(Math.floor(Math.random() * 1_000_000));
  const { faults, figures } = await runAdversary({
    ...{ seed, databaseUrl: await freshPostgres(), aloneMs: 2_000, attackMs: 7_500 },
    ...{ calmMs: 1_200, liesMs: 1_000, isLong: false },
    // Other tests run beside it. What it is to find took longer, and stalls are found by themselves.
    ...{ floorMs: 5_000, workers: 1 },
  });
  expect(faults, `seed ${seed}: ${JSON.stringify(figures)}`).toEqual([]);
  // A test that times out leaves its processes behind, so the limit is far above the twenty seconds it takes.
}, 300_000);
