import type { Clock } from '../ports/clock.ts';

/** The machine's clock. */
export const systemClock: Clock = { now: () => Date.now() };

/** A clock that a tester can stop, set and move. Times are Unix milliseconds. */
export interface AdjustableClock extends Clock {
  readonly isFrozen: boolean;
  /** Makes `nowMs` the present; a running clock runs on from there. */
  set(nowMs: number): void;
  /** Moves the present by `durationMs`, which may be negative. */
  advance(durationMs: number): void;
  freeze(): void;
  resume(): void;
  /** Back to how the clock was made. */
  reset(): void;
}

interface AdjustableClockOptions {
  /** Where the clock stands at first; the machine's present when left out. */
  startMs?: number;
  frozen?: boolean;
  machine?: Clock;
}

/**
 * Makes an adjustable clock.
 *
 * NOTE: a running clock is the machine's clock plus an offset, so it follows the machine over a suspend.
 */
export function adjustableClock(options: AdjustableClockOptions = {}): AdjustableClock {
  const machine = options.machine ?? systemClock;
  let frozenAtMs: number | undefined;
  let offsetMs = 0;

  const now = (): number => frozenAtMs ?? machine.now() + offsetMs;
  const set = (nowMs: number): void => {
    if (frozenAtMs === undefined) offsetMs = nowMs - machine.now();
    else frozenAtMs = nowMs;
  };
  const freeze = (): void => {
    frozenAtMs = now();
  };
  const resume = (): void => {
    if (frozenAtMs === undefined) return;
    offsetMs = frozenAtMs - machine.now();
    frozenAtMs = undefined;
  };
  const reset = (): void => {
    frozenAtMs = undefined;
    offsetMs = 0;
    if (options.startMs !== undefined) set(options.startMs);
    // Not `freeze()`: the machine may have gone on by a millisecond since `set`.
    if (options.frozen === true) frozenAtMs = options.startMs ?? machine.now();
  };

  reset();
  return {
    now,
    set,
    freeze,
    resume,
    reset,
    advance: (durationMs) => set(now() + durationMs),
    get isFrozen() {
      return frozenAtMs !== undefined;
    },
  };
}
