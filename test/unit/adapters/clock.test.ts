import { expect, test } from 'vitest';
import { adjustableClock } from '../../../src/adapters/runtime.ts';

function machineAt(startMs: number) {
  let nowMs = startMs;
  return {
    now: () => nowMs,
    pass(durationMs: number): void {
      nowMs += durationMs;
    },
  };
}

test('a running clock follows the machine, a frozen one stands still', () => {
  const machine = machineAt(1_000);
  const clock = adjustableClock({ machine });
  machine.pass(5);
  expect([clock.now(), clock.isFrozen]).toEqual([1_005, false]);
  clock.freeze();
  machine.pass(100);
  expect([clock.now(), clock.isFrozen]).toEqual([1_005, true]);
  clock.resume();
  expect(clock.now()).toBe(1_005);
  machine.pass(1);
  expect([clock.now(), clock.isFrozen]).toEqual([1_006, false]);
});

test('an initially frozen clock stays at its start time', () => {
  let nowMs = 1_000;
  const clock = adjustableClock({ startMs: 50, frozen: true, machine: { now: () => nowMs++ } });
  expect(clock.now()).toBe(50);
  clock.advance(5);
  clock.reset();
  expect([clock.now(), clock.isFrozen]).toEqual([50, true]);
});

test('a clock that is set continues from there', () => {
  const machine = machineAt(1_000);
  const clock = adjustableClock({ machine });
  clock.set(50);
  machine.pass(7);
  expect(clock.now()).toBe(57);
  clock.advance(-7);
  expect(clock.now()).toBe(50);
  clock.freeze();
  clock.set(10);
  clock.advance(5);
  machine.pass(7);
  expect(clock.now()).toBe(15);
});

test('a reset restores the initial state', () => {
  const machine = machineAt(1_000);
  const frozen = adjustableClock({ machine, startMs: 77, frozen: true });
  frozen.advance(1);
  frozen.resume();
  machine.pass(10);
  expect(frozen.now()).toBe(88);
  frozen.reset();
  expect([frozen.now(), frozen.isFrozen]).toEqual([77, true]);

  const running = adjustableClock({ machine });
  running.set(5);
  running.freeze();
  running.reset();
  expect([running.now(), running.isFrozen]).toEqual([1_010, false]);
});
