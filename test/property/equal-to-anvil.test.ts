import { expect, test } from 'vitest';
import { figureProgress, figureSize, noteFigure } from '../figures/figure.ts';
import { randomOf } from '../simulation/random.ts';
import { randomCase } from '../support/evm/cases.ts';
import { comparable } from '../support/evm/comparable.ts';
import { bothSee, type Seen } from '../support/evm/look.ts';
import { type Answer, isTimeout, openPair, type Pair } from '../support/evm/pair.ts';

// The same random transactions among random contracts, on a simulated chain and on anvil: everything that both nodes say
// of them is equal, before and after. `comparable.ts` names the exceptions.

const transactions = figureSize({ short: 20, long: 5_000 });

/** Anvil keeps the steps of everything that it has executed, and slows down with them. */
const CASES_OF_A_PAIR = 200;

/** Anvil estimates more gas than a transaction may have (EIP-7825), where geth fails as we do. */
const GAS_CAP = 16_777_216n;

/**
 * A call succeeds on both nodes with the gas that we estimate. The estimates themselves differ: programs that read how much
 * gas is left succeed with some limits and fail with higher ones, and each node tries other limits.
 */
function expectEstimate(here: Seen, there: Seen, withEstimate: readonly Answer[], what: string): void {
  const [ours, theirs] = [here.estimates[0]!, there.estimates[0]!];
  if ('result' in ours) {
    for (const answer of withEstimate)
      expect({ what, answer }).toMatchObject({ answer: { result: expect.any(String) } });
  } else if ('result' in theirs && !isTimeout(ours)) {
    expect({ what, ours, least: BigInt(theirs.result as string) > GAS_CAP }).toMatchObject({ least: true });
  }
}

test(
  `${transactions} transactions have equal results, receipts, traces and effects`,
  async () => {
    const none = { cases: 0, transactions: 0, succeeded: 0, reverted: 0, created: 0, logs: 0, steps: 0 };
    const progress = figureProgress<Partial<Counts>>({});
    const counts: Counts = { ...none, timeouts: 0, ...progress.state };
    while (counts.transactions < transactions) {
      await using pair = await openPair();
      const end = counts.cases + CASES_OF_A_PAIR;
      while (counts.cases < end && counts.transactions < transactions) {
        await compareNext(pair, counts);
        progress.save(counts);
      }
    }
    expect(counts.succeeded).toBeGreaterThan(transactions / 4);
    noteFigure(counts);
  },
  4 * 3_600_000,
);

type Counts = Record<
  'cases' | 'transactions' | 'succeeded' | 'reverted' | 'created' | 'logs' | 'steps' | 'timeouts',
  number
>;

async function compareNext(pair: Pair, counts: Counts): Promise<void> {
  const what = `case ${counts.cases}`;
  const one = await randomCase(randomOf(what));
  const { seen, withEstimate } = await bothSee(pair, one);
  for (const [subject, [ours, theirs]] of Object.entries(comparable(one, seen))) {
    expect({ what, subject, is: ours }).toEqual({ what, subject, is: theirs });
  }
  if (one.isEstimated) expectEstimate(...seen, withEstimate, what);
  counts.cases += 1;
  counts.transactions += one.transactions.length;
  count(seen[0], counts);
}

function count({ receipts, steps, callTraces, states, changes }: Seen, counts: Counts): void {
  const add = (name: keyof Counts, amount: number): void => {
    counts[name] += amount;
  };
  for (const answer of receipts) {
    if (!('result' in answer) || answer.result === null) continue;
    const { status, contractAddress, logs } = answer.result as Record<string, unknown>;
    add(status === '0x1' ? 'succeeded' : 'reverted', 1);
    add('created', contractAddress === null ? 0 : 1);
    add('logs', (logs as unknown[]).length);
  }
  add('timeouts', [...steps, ...callTraces, ...states, ...changes].filter(isTimeout).length);
  for (const answer of steps) {
    if ('result' in answer) add('steps', (answer.result as { structLogs: unknown[] }).structLogs.length);
  }
}
