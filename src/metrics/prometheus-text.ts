import type { Distribution, Family, Labels } from './families.ts';

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
