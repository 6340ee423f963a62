import { PerformanceObserver } from 'node:perf_hooks';
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';

/*
 * V8 sizes its heap by the memory of the machine: on one with 24 GB, the young generation of a server with 35 MB of objects
 * grows to 134 MB, and the old one to three times what is alive in it. These limits are flags of V8 that a program can only
 * be started with; what is changed here are the two factors by which the generations grow.
 */

/**
 * CHOICE: half of the young generation. Smaller ones are collected so often that a request that reads a wallet takes a tenth
 * more CPU with 8 MB, and a fifth with 4.
 */
const SEMI_SPACE_BYTES = 16_000_000;

/** CHOICE: the old generation is collected when it has grown by so much since the last time. */
const OLD_GROWTH_PERCENT = 50;

/** V8 shrinks the young generation of an idle process. It grows again when collections are no further apart. */
const BUSY_MS = 250;

/** The flags and their defaults: by what factor half of the young generation grows, and the old one in percent. */
const YOUNG = { name: 'semi-space-growth-factor', whenFree: 2 };
const OLD = { name: 'heap-growing-percent', whenFree: 0 };

/** A heap with limits. */
export interface BoundedHeap {
  /** Runs `work` with the flags that V8 has started with, on which bytecode depends. */
  withFlagsOfStart<T>(work: () => T): T;
}

/** Limits the heap of this process, unless one of the `flags` that it was started with does. */
export function boundHeap(flags: readonly string[]): BoundedHeap {
  if (flags.some((flag) => /^--(m\w+[-_]semi[-_]space|semi[-_]space|heap[-_]growing)/.test(flag))) {
    return { withFlagsOfStart: (work) => work() };
  }
  const bound = (): void => {
    set(YOUNG.name, 1);
    set(OLD.name, OLD_GROWTH_PERCENT);
  };
  bound();
  grow();
  let collectedMs = -BUSY_MS;
  const observer = new PerformanceObserver((list) => {
    const { startTime } = list.getEntries().at(-1)!;
    if (startTime - collectedMs < BUSY_MS) grow();
    collectedMs = startTime;
  });
  observer.observe({ entryTypes: ['gc'] });
  return {
    withFlagsOfStart(work) {
      set(YOUNG.name, YOUNG.whenFree);
      set(OLD.name, OLD.whenFree);
      try {
        return work();
      } finally {
        bound();
      }
    },
  };
}

/**
 * Makes the young generation grow to about its limit, if it is far from it, in one step and no further.
 *
 * NOTE: V8 lets it grow after a collection, if what survived since the last growth is more than its size.
 */
function grow(): void {
  const factor = youngFactor();
  if (factor < 2) return;
  set(YOUNG.name, factor);
  const survivors: unknown[] = [];
  for (let bytes = 0; bytes < 4 * SEMI_SPACE_BYTES && youngFactor() > 1; bytes += 65_536) {
    // Eight bytes each.
    survivors.push(new Array(8_192).fill(0));
  }
  set(YOUNG.name, 1);
}

/** By which factor half of the young generation is smaller than its limit. */
function youngFactor(): number {
  const space = getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space');
  // NOTE: `space_size` is what is committed of both halves, which follows later.
  return space === undefined
    ? 1
    : Math.round(SEMI_SPACE_BYTES / (space.space_used_size + space.space_available_size));
}

function set(name: string, value: number): void {
  setFlagsFromString(`--${name}=${value}`);
}
