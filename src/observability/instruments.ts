import { mergeNodeMetrics, type NodeValues } from './gauges.ts';

type Labels = Readonly<Record<string, string>>;

/** A value of a counter or a gauge. */
export interface Sample {
  readonly labels: Labels;
  readonly value: number;
}

/** The observations of a histogram with one set of labels. */
interface Distribution {
  readonly labels: Labels;
  /** Per bucket, not cumulative; one more than there are bounds. */
  readonly counts: readonly number[];
  readonly sum: number;
}

interface FamilyHead {
  readonly name: string;
  readonly help: string;
}

/** All values of one metric at one moment: plain data, so that those of several processes can be sent and added up. */
export type Family = FamilyHead &
  (
    | {
        readonly type: 'counter' | 'gauge';
        readonly samples: readonly Sample[];
        /** Of several processes the largest value counts, because each reads the same thing. Default: they are added. */
        readonly across?: 'max';
      }
    | {
        readonly type: 'histogram';
        /** The upper bounds of the buckets; the last bucket has none. */
        readonly bounds: readonly number[];
        readonly distributions: readonly Distribution[];
      }
  );

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

/** The metrics in the text format of Prometheus, version 0.0.4. */
export function prometheusText(families: readonly Family[]): string {
  return families.map(textOf).join('');
}

function textOf(family: Family): string {
  const head = `# HELP ${family.name} ${escapeHelp(family.help)}\n# TYPE ${family.name} ${family.type}\n`;
  if (family.type !== 'histogram') {
    const lines = family.samples.map(({ labels, value }) => `${family.name}${labelsText(labels)} ${value}\n`);
    return head + lines.join('');
  }
  return head + family.distributions.map((each) => distributionText(family, each)).join('');
}

function distributionText(
  { name, bounds }: Family & { type: 'histogram' },
  { labels, counts, sum }: Distribution,
): string {
  let total = 0;
  const buckets = counts.map((count, at) => {
    total += count;
    const le = at < bounds.length ? String(bounds[at]) : '+Inf';
    return `${name}_bucket${labelsText({ le, ...labels })} ${total}\n`;
  });
  const own = labelsText(labels);
  return `${buckets.join('')}${name}_sum${own} ${sum}\n${name}_count${own} ${total}\n`;
}

function labelsText(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escapeValue(value)}"`);
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}

function escapeHelp(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
}

function escapeValue(text: string): string {
  return escapeHelp(text).replaceAll('"', '\\"');
}

/** All metrics of one process at one moment: plain data. */
export interface MetricValues {
  readonly families: readonly Family[];
  readonly node: NodeValues;
}

/**
 * The metrics of several processes as the text of one: values are added up, except those that each process reads of the
 * same thing, of which the largest counts.
 *
 * @param further metrics of a process that has no others.
 */
export async function mergedText(
  ofProcesses: readonly MetricValues[],
  further: readonly Family[] = [],
): Promise<string> {
  const merged = new Map<string, Family>();
  for (const families of [...ofProcesses.map((each) => each.families), further]) {
    for (const family of families) {
      const known = merged.get(family.name);
      merged.set(family.name, known === undefined ? family : merge(known, family));
    }
  }
  return prometheusText([...merged.values()]) + (await mergeNodeMetrics(ofProcesses.map(({ node }) => node)));
}

function merge(one: Family, other: Family): Family {
  if (one.type === 'histogram') {
    if (other.type !== 'histogram') return one;
    return {
      ...one,
      distributions: byLabels([...one.distributions, ...other.distributions], addDistributions),
    };
  }
  if (other.type === 'histogram') return one;
  const join = one.across === 'max' ? Math.max : (a: number, b: number) => a + b;
  const joinSamples = (a: Sample, b: Sample): Sample => ({ ...a, value: join(a.value, b.value) });
  return { ...one, samples: byLabels([...one.samples, ...other.samples], joinSamples) };
}

function addDistributions(a: Distribution, b: Distribution): Distribution {
  return { ...a, counts: a.counts.map((count, at) => count + (b.counts[at] ?? 0)), sum: a.sum + b.sum };
}

function byLabels<T extends { readonly labels: Labels }>(all: readonly T[], join: (a: T, b: T) => T): T[] {
  const joined = new Map<string, T>();
  for (const each of all) {
    const key = JSON.stringify(each.labels);
    const known = joined.get(key);
    joined.set(key, known === undefined ? each : join(known, each));
  }
  return [...joined.values()];
}
