import { expect, test } from 'vitest';
import { makePatience } from '../../simulation/scheduler.ts';

test('a loop that waits is given up after twenty seconds', () => {
  let nowMs = 0;
  const patience = makePatience(() => nowMs);
  for (; nowMs < 20_000; nowMs += 100) expect(patience.isOver()).toBe(false);
  nowMs += 200;
  expect(patience.isOver()).toBe(true);
});

test('the time in which the process was stopped does not count', () => {
  let nowMs = 0;
  const patience = makePatience(() => nowMs);
  nowMs += 300_000;
  expect(patience.isOver()).toBe(false);
});
