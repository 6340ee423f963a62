import type { Check, Report, Suite } from '../reports/report.ts';
import { figuresOf, titleOf, type Verdict } from './judge.ts';
import { type Dimension, dimensions, type Measured, type Row } from './measure.ts';

const document = 'openapi/openapi.json';

/** For JUnit and SARIF: a check for each row. Without a verdict about it, a gap is reported and fails nothing. */
export function coverageReport(measured: Measured, verdict: Verdict, version: string): Report {
  const failing = new Set(verdict.unlisted);
  const suites = (Object.keys(dimensions) as Dimension[]).map((dimension): Suite => {
    const rows = measured.rows.filter((row) => row.dimension === dimension);
    return { name: dimensions[dimension], checks: rows.map((row) => checkOf(row, failing)) };
  });
  const faults = verdict.faults.map((fault, index): Check => {
    const finding = { rule: 'insufficient-coverage', message: fault };
    return { name: `verdict ${index + 1}`, outcome: 'failed', finding, file: document };
  });
  return {
    tool: 'custos coverage',
    version,
    rules: [
      { id: 'not-covered', description: 'The contract offers it, and no recorded request used it.' },
      { id: 'undocumented', description: 'An answer that the contract does not document.' },
      { id: 'insufficient-coverage', description: 'The coverage is below what was asked for.' },
    ],
    suites: [
      ...suites,
      { name: 'undocumented answers', checks: undocumentedChecks(measured) },
      { name: 'verdict', checks: faults },
    ],
  };
}

function checkOf({ name, count }: Row, failing: ReadonlySet<string>): Check {
  if (count > 0) return { name, outcome: 'passed' };
  const finding = { rule: 'not-covered', message: 'not covered' };
  return { name, outcome: failing.has(name) ? 'failed' : 'skipped', finding, file: document };
}

function undocumentedChecks({ undocumented }: Measured): Check[] {
  return [...undocumented].map(([name, count]) => ({
    name,
    outcome: 'skipped',
    finding: { rule: 'undocumented', message: `seen ${count} times, and not in the contract` },
    file: document,
  }));
}

/** For other programs. */
export function coverageJson(measured: Measured, verdict: Verdict): object {
  const { rows, requests, unknownRequests, undocumented } = measured;
  return {
    figures: figuresOf(measured),
    requests,
    unknown_requests: unknownRequests,
    undocumented: Object.fromEntries(undocumented),
    faults: verdict.faults,
    unlisted: verdict.unlisted,
    closed: verdict.closed,
    rows: rows.map(({ dimension, name, operation = null, count }) => ({ dimension, name, operation, count })),
  };
}

const MOST_LISTED = 50;

/** The figures, and what is at fault, for a terminal. */
export function coverageText(measured: Measured, verdict: Verdict): string {
  const listed = (title: string, names: readonly string[]): string[] => {
    const more = names.length - MOST_LISTED;
    const rest = more > 0 ? [`  … and ${more} more`] : [];
    return names.length === 0
      ? []
      : ['', `${title}:`, ...names.slice(0, MOST_LISTED).map((name) => `  ${name}`), ...rest];
  };
  return [
    ...figureLines(measured).map(
      ([title, share, percent]) => `${title.padEnd(34)}  ${share.padStart(11)}  ${percent.padStart(7)}`,
    ),
    '',
    requestsLine(measured),
    ...listed('Not in the contract', [...measured.undocumented.keys()]),
    ...listed('Not covered and not in the baseline', verdict.unlisted),
    ...listed('In the baseline and covered, to be deleted from it', verdict.closed),
    ...listed('Not sufficient', verdict.faults),
  ].join('\n');
}

/** Markdown for the summary of a GitHub job. */
export function coverageMarkdown(measured: Measured, verdict: Verdict): string {
  const listed = (title: string, names: readonly string[]): string[] =>
    names.length === 0
      ? []
      : ['', `**${title}**`, '', ...names.slice(0, MOST_LISTED).map((name) => `- \`${name}\``)];
  return [
    '### Coverage of the contract',
    '',
    '| | covered | |',
    '|---|---:|---:|',
    ...figureLines(measured).map(([title, share, percent]) => `| ${title} | ${share} | ${percent} |`),
    '',
    requestsLine(measured),
    ...listed('Not in the contract', [...measured.undocumented.keys()]),
    ...listed('Not covered and not in the baseline', verdict.unlisted),
    ...listed('In the baseline and covered', verdict.closed),
    ...verdict.faults.flatMap((fault) => ['', `:x: ${fault}`]),
    '',
  ].join('\n');
}

function requestsLine({ requests, unknownRequests }: Measured): string {
  const unknown = unknownRequests === 0 ? '' : `, ${unknownRequests} of them to no operation of the contract`;
  return `${requests} requests${unknown}`;
}

function figureLines(measured: Measured): [title: string, share: string, percent: string][] {
  const figures = figuresOf(measured);
  return (Object.keys(figures) as (Dimension | 'all')[]).map((dimension) => {
    const { covered, total, percent } = figures[dimension];
    return [titleOf(dimension), `${covered} / ${total}`, `${percent.toFixed(1)} %`];
  });
}
