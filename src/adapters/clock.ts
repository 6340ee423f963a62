import type { Clock } from '../ports/clock.ts';

/** The system clock. */
export const systemClock: Clock = { now: () => Date.now() };

/** How a clock differs from that of the machine. */
interface ClockState {
  /** Null for a running clock. */
  readonly frozenAtMs: number | null;
  /** Added to the time of the machine while the clock runs. */
  readonly offsetMs: number;
}

/** A clock that can be frozen, set and moved. Times are Unix milliseconds. */
export interface AdjustableClock extends Clock {
  readonly isFrozen: boolean;
  /** Sets the time; a running clock continues from there. */
  set(nowMs: number): void;
  /** Moves the time by `durationMs`, which may be negative. */
  advance(durationMs: number): void;
  freeze(): void;
  resume(): void;
  /** Restores the initial time and the initial frozen state. */
  reset(): void;
  state(): ClockState;
  restore(state: ClockState): void;
}

interface AdjustableClockOptions {
  /** The initial time; the system time by default. */
  startMs?: number;
  frozen?: boolean;
  machine?: Clock;
}

/**
 * Creates an adjustable clock.
 *
 * NOTE: a running clock is the system clock plus an offset, so it stays correct when the machine was suspended.
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
    // Not `freeze()`: the system clock may have advanced by a millisecond since `set`.
    if (options.frozen === true) frozenAtMs = options.startMs ?? machine.now();
  };

  reset();
  return {
    now,
    set,
    freeze,
    resume,
    reset,
    state: () => ({ frozenAtMs: frozenAtMs ?? null, offsetMs }),
    restore(state) {
      frozenAtMs = state.frozenAtMs ?? undefined;
      offsetMs = state.offsetMs;
    },
    advance: (durationMs) => set(now() + durationMs),
    get isFrozen() {
      return frozenAtMs !== undefined;
    },
  };
}
