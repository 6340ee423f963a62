import type { Distribution, Family, Labels, Sample } from './families.ts';

/** CHOICE: further values of a label are counted together as `other`, so that no input can make metrics grow. */
const MAX_CHILDREN = 1_000;
const OTHER = 'other';

/** Upper bounds in seconds. Most operations take less than 5 ms; the upper buckets show a slow database. */
export const shortTimes: readonly number[] = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5,
];

/** Upper bounds in seconds, for calls of other systems and batches of jobs. */
export const longTimes: readonly number[] = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

interface Head<Name extends string> {
  readonly name: string;
  readonly help: string;
  readonly labels: readonly Name[];
}

/** The values of the labels, in the order of their names. */
type Values = readonly string[];

/**
 * HOT: the instruments of every request. A child is found once and kept by its caller; counting is then an addition.
 * The counters of prom-client build a text from the labels of every observation, which costs 1.5 µs per request.
 */
export interface Counter {
  add(amount?: number): void;
}

export interface Histogram {
  observe(value: number): void;
}

export interface Instrument<Child> {
  /** The child with these label values; the same one at each call. */
  with(...values: Values): Child;
  family(): Family;
}

/** A counter with labels. */
export function counterOf<Name extends string>(head: Head<Name>): Instrument<Counter> {
  const children = childrenOf(() => {
    let value = 0;
    return {
      add(amount = 1) {
        value += amount;
      },
      sample: (labels: Labels): Sample => ({ labels, value }),
    };
  }, head.labels);
  return {
    with: children.with,
    family: () => ({
      ...{ name: head.name, help: head.help, type: 'counter' },
      samples: children.all().map(({ child, labels }) => child.sample(labels)),
    }),
  };
}

/** A histogram with labels. */
export function histogramOf<Name extends string>(
  head: Head<Name> & { readonly bounds: readonly number[] },
): Instrument<Histogram> {
  const { bounds } = head;
  const children = childrenOf(() => {
    const counts: number[] = Array.from({ length: bounds.length + 1 }, () => 0);
    let sum = 0;
    return {
      observe(value: number) {
        let at = 0;
        while (at < bounds.length && value > bounds[at]!) at += 1;
        counts[at]! += 1;
        sum += value;
      },
      distribution: (labels: Labels): Distribution => ({ labels, counts: [...counts], sum }),
    };
  }, head.labels);
  return {
    with: children.with,
    family: () => ({
      ...{ name: head.name, help: head.help, type: 'histogram', bounds },
      distributions: children.all().map(({ child, labels }) => child.distribution(labels)),
    }),
  };
}

function childrenOf<Child>(make: () => Child, names: readonly string[]) {
  const known = new Map<string, { readonly labels: Labels; readonly child: Child }>();
  const find = (values: Values): Child => {
    const key = values.join('\n');
    const found = known.get(key);
    if (found !== undefined) return found.child;
    if (known.size >= MAX_CHILDREN && values.some((value) => value !== OTHER))
      return find(names.map(() => OTHER));
    const child = make();
    known.set(key, { child, labels: Object.fromEntries(names.map((name, at) => [name, values[at]!])) });
    return child;
  };
  return { with: (...values: Values) => find(values), all: () => [...known.values()] };
}
