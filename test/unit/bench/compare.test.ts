import { expect, test } from 'vitest';
import { compareGoals } from '../../../bench/compare.ts';
import { atLeast, atMost, type Goal } from '../../../bench/report.ts';

const costOf = (measured: number): Goal => atMost('G1', 'cost', measured, 2);
const speedOf = (measured: number): Goal => atLeast('G8', 'speed', measured, 0.9);
const startOf = (measured: number): Goal => atMost('G6', 'start', measured, 700, 'ms');

test.each([
  ['a ratio that grew by a quarter', costOf(1), costOf(1.25), 1.25, false],
  ['a ratio that grew by more', costOf(1), costOf(1.3), 1.3, true],
  ['a ratio that fell', costOf(2), costOf(1), 0.5, false],
  ['a share that fell by more', speedOf(0.9), speedOf(0.6), 1.5, true],
  ['a share that grew', speedOf(0.6), speedOf(0.9), 2 / 3, false],
  ['a time, which depends on the machine', startOf(500), startOf(900), 1.8, false],
])('%s', (_, before, now, change, isWorse) => {
  const { table, worse } = compareGoals([before], [now]);
  expect(table.rows[0]?.[4]).toBeCloseTo(change, 6);
  expect(worse).toEqual(isWorse ? [now.what] : []);
});

test('goals that only one of the runs measured are left out', () => {
  expect(compareGoals([costOf(1)], [speedOf(1)]).table.rows).toEqual([]);
});
