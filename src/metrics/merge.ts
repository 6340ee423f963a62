import type { Distribution, Family, Labels, Sample } from './families.ts';
import { mergeNodeMetrics, type NodeValues } from './node-metrics.ts';
import { prometheusText } from './prometheus-text.ts';

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
