import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { silentLog } from '../../../../src/adapters/log.ts';
import { createRateLevels } from '../../../../src/server/rate-levels.ts';

// A process whose shared table hangs, for as long as a silent connection takes to be given up.

const steady = { name: 'app', capacity: 20, perSecond: 10 };
const HANG_MS = 15_000;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test.each(['answers', 'fails'] as const)(
  'a steady caller is not refused when a table that hung %s at last',
  async (end) => {
    const table = { isHanging: true, finish: (): void => undefined };
    const pool = {
      async query({ values = [] }: { values?: unknown[] }) {
        const [keys = [], points = []] = values as [string[], number[]];
        if (table.isHanging)
          await new Promise<void>((resolve, reject) => {
            table.finish = end === 'answers' ? resolve : () => reject(new Error('no answer'));
          });
        return { rows: keys.map((key, at) => ({ key, level: points[at] })) };
      },
    };
    const levels = createRateLevels({ shared: { pool, log: silentLog }, now: () => Date.now() });
    const ask = () => levels.take(steady, 'acme', 1).isGranted;
    const granted: boolean[] = [];
    const pass = async (ms: number): Promise<void> => {
      for (let at = 0; at < ms; at += 200) {
        granted.push(ask());
        await vi.advanceTimersByTimeAsync(200);
      }
    };
    await pass(HANG_MS);
    table.isHanging = false;
    table.finish();
    await pass(4_000);
    expect(granted.filter((each) => !each)).toEqual([]);
  },
);
