import type { SimulationResult } from '../simulate.ts';

interface Failure {
  readonly seed: string;
  readonly message: string;
}

/** What a number of seeds came to. */
export interface Tally {
  /** How many seeds. */
  readonly size: number;
  readonly failures: readonly Failure[];
  readonly virtualMs: number;
  readonly crashes: number;
  readonly diskFaults: number;
  readonly interleavings: number;
  readonly events: number;
  readonly records: number;
  readonly deliveries: number;
  readonly outcomes: Readonly<Record<string, number>>;
}

export const noSeeds: Tally = {
  ...{ size: 0, failures: [], outcomes: {} },
  ...{ virtualMs: 0, crashes: 0, diskFaults: 0, interleavings: 0, events: 0, records: 0, deliveries: 0 },
};

export function tallyOf({ figures: { resumed: interleavings, ...figures } }: SimulationResult): Tally {
  return { ...figures, interleavings, size: 1, failures: [] };
}

export function sumOf(tallies: readonly Tally[]): Tally {
  return tallies.reduce(addTally, noSeeds);
}

function addTally(one: Tally, other: Tally): Tally {
  const outcomes: Record<string, number> = { ...one.outcomes };
  for (const [name, count] of Object.entries(other.outcomes)) outcomes[name] = (outcomes[name] ?? 0) + count;
  return {
    size: one.size + other.size,
    failures: [...one.failures, ...other.failures],
    virtualMs: one.virtualMs + other.virtualMs,
    crashes: one.crashes + other.crashes,
    diskFaults: one.diskFaults + other.diskFaults,
    interleavings: one.interleavings + other.interleavings,
    events: one.events + other.events,
    records: one.records + other.records,
    deliveries: one.deliveries + other.deliveries,
    outcomes: Object.fromEntries(Object.entries(outcomes).sort(([a], [b]) => a.localeCompare(b))),
  };
}
