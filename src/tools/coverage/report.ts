import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../config/package-root.ts';
import type { ContractDocument } from '../contract/contract-document.ts';
import { type Check, escapeXml, junitOf, type Report, type Suite, sarifOf } from '../reports.ts';
import { figuresOf, titleOf, type Verdict } from './judge.ts';
import { type Dimension, dimensions, type Measured, type Row } from './measure.ts';

const style = `
:root { color-scheme: light dark; --bad: #b3261e; --good: #1b6e3c; --line: #8884; }
@media (prefers-color-scheme: dark) { :root { --bad: #ff8a80; --good: #7ddc9f; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .2rem .6rem; border-bottom: 1px solid var(--line); }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
progress { width: 100%; min-width: 6rem; }
details { margin: .4rem 0; }
summary { cursor: pointer; }
code { font: 13px ui-monospace, monospace; overflow-wrap: anywhere; }
.bad { color: var(--bad); }
.good { color: var(--good); }
form { display: flex; gap: 1rem; flex-wrap: wrap; margin: 1rem 0; }
[hidden] { display: none; }`;

// The page's script. It filters rows by text, and can show only what is not covered.
const script = `
const text = document.querySelector('#text'), open = document.querySelector('#open');
const groups = [...document.querySelectorAll('details')].map((group) => ({
  group, rows: [...group.querySelectorAll('tbody tr')].map((row) => ({ row, name: row.textContent.toLowerCase() })),
}));
function filter() {
  const wanted = text.value.trim().toLowerCase();
  for (const { group, rows } of groups) {
    let shown = 0;
    for (const { row, name } of rows) {
      row.hidden = (open.checked && row.dataset.covered === '1') || !name.includes(wanted);
      if (!row.hidden) shown += 1;
    }
    group.hidden = shown === 0;
    if (wanted !== '') group.open = shown > 0;
  }
}
text.addEventListener('input', filter);
open.addEventListener('change', filter);`;

/** Renders one page without external files: the figures, and each operation with its used and unused parts. */
export function coverageHtml(measured: Measured, verdict: Verdict): string {
  const { rows, requests } = measured;
  const byOperation = Map.groupBy(
    rows.filter(({ dimension }) => dimension !== 'operations'),
    ({ operation, dimension }) => operation ?? dimensions[dimension],
  );
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Coverage of the contract</title>
<style>${style}</style>
</head>
<body>
<main>
<h1>Coverage of the contract</h1>
<p>${requests} requests</p>
${verdict.faults.map((fault) => `<p class="bad">${escapeXml(fault)}</p>`).join('\n')}
${figureTable(measured)}
${undocumentedList(measured)}
<h2>Operations, events and decisions</h2>
<form>
<label>Filter <input id="text" type="search"></label>
<label><input id="open" type="checkbox"> only what is not covered</label>
</form>
${[...byOperation].map(([name, own]) => group(name, own)).join('\n')}
</main>
<script>${script}</script>
</body>
</html>
`;
}

function figureTable(measured: Measured): string {
  const figures = figuresOf(measured);
  const lines = (Object.keys(figures) as (Dimension | 'all')[]).map((dimension) => {
    const { covered, total, percent } = figures[dimension];
    const title = escapeXml(titleOf(dimension));
    return `<tr><th scope="row">${title}</th><td class="number">${covered} / ${total}</td><td class="number">${percent.toFixed(1)} %</td><td><progress max="${Math.max(total, 1)}" value="${covered}" aria-label="${title}"></progress></td></tr>`;
  });
  return `<table>
<thead><tr><th scope="col">what</th><th scope="col" class="number">covered</th><th scope="col" class="number">share</th><th scope="col"></th></tr></thead>
<tbody>
${lines.join('\n')}
</tbody>
</table>`;
}

function undocumentedList({ undocumented }: Measured): string {
  if (undocumented.size === 0) return '';
  const items = [...undocumented].map(
    ([name, count]) => `<li><code>${escapeXml(name)}</code> (${count} times)</li>`,
  );
  return `<h2>Not in the contract</h2>\n<ul class="bad">\n${items.join('\n')}\n</ul>`;
}

function group(name: string, rows: readonly Row[]): string {
  const covered = rows.filter(({ count }) => count > 0).length;
  const lines = rows.map(({ name: row, count }) => {
    const isCovered = count > 0;
    return `<tr data-covered="${isCovered ? 1 : 0}"><td><code>${escapeXml(row)}</code></td><td class="number ${isCovered ? 'good' : 'bad'}">${count}</td></tr>`;
  });
  return `<details>
<summary><code>${escapeXml(name)}</code> ${covered} / ${rows.length}</summary>
<table>
<thead><tr><th scope="col">offered</th><th scope="col" class="number">seen</th></tr></thead>
<tbody>
${lines.join('\n')}
</tbody>
</table>
</details>`;
}

const document = 'openapi/openapi.json';

/**
 * Returns the report for JUnit and SARIF, with one check per row. Without thresholds and a baseline, a gap is
 * reported but does not fail.
 */
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

/** Returns the report as JSON for other programs. */
function coverageJson(measured: Measured, verdict: Verdict): object {
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

const MAX_LISTED = 50;

/** Returns the figures and the problems as text for a terminal. */
export function coverageText(measured: Measured, verdict: Verdict): string {
  const listed = (title: string, names: readonly string[]): string[] => {
    const more = names.length - MAX_LISTED;
    const rest = more > 0 ? [`  … and ${more} more`] : [];
    return names.length === 0
      ? []
      : ['', `${title}:`, ...names.slice(0, MAX_LISTED).map((name) => `  ${name}`), ...rest];
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

/** Returns the report as Markdown, for the summary of a GitHub job. */
export function coverageMarkdown(measured: Measured, verdict: Verdict): string {
  const listed = (title: string, names: readonly string[]): string[] =>
    names.length === 0
      ? []
      : ['', `**${title}**`, '', ...names.slice(0, MAX_LISTED).map((name) => `- \`${name}\``)];
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

export function contractDocument(): ContractDocument {
  return JSON.parse(readFileSync(join(packageRoot(), 'openapi', 'openapi.json'), 'utf8')) as ContractDocument;
}

type Format = 'text' | 'json' | 'html' | 'junit' | 'sarif' | 'github';

export function renderCoverage(format: Format, measured: Measured, verdict: Verdict): string {
  if (format === 'text') return coverageText(measured, verdict);
  if (format === 'html') return coverageHtml(measured, verdict);
  if (format === 'github') return coverageMarkdown(measured, verdict);
  if (format === 'json') return JSON.stringify(coverageJson(measured, verdict), undefined, 2);
  const report = coverageReport(measured, verdict, versionOfPackage());
  return format === 'junit' ? junitOf(report) : JSON.stringify(sarifOf(report), undefined, 2);
}

function versionOfPackage(): string {
  const text = readFileSync(join(packageRoot(), 'package.json'), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}
