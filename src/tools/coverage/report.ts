import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../config/package-root.ts';
import type { ContractDocument } from '../contract/contract-document.ts';
import { type Check, escapeXml, junitOf, type Report, type Suite, sarifOf } from '../reports.ts';
import { calledIn, type Figure, figuresOf, perOperation, titleOf, type Verdict } from './judge.ts';
import { type Dimension, dimensions, type Measured, type Row } from './measure.ts';

const style = `
:root { color-scheme: light dark; --bad: #b3261e; --good: #1b6e3c; --line: #8884; --bar: #8883; }
@media (prefers-color-scheme: dark) { :root { --bad: #ff8a80; --good: #7ddc9f; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 1.5rem; }
th, td { text-align: left; padding: .2rem .6rem; border-bottom: 1px solid var(--line); }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
th button { font: inherit; font-weight: 600; background: none; border: 0; padding: 0; color: inherit; cursor: pointer; }
th[aria-sort=ascending] button::after { content: ' ▲'; }
th[aria-sort=descending] button::after { content: ' ▼'; }
progress { width: 100%; min-width: 6rem; }
details { margin: .4rem 0; }
summary { cursor: pointer; }
code { font: 13px ui-monospace, monospace; overflow-wrap: anywhere; }
.bad { color: var(--bad); }
.good { color: var(--good); }
form { display: flex; gap: 1rem; flex-wrap: wrap; margin: 1rem 0; }
[hidden] { display: none; }`;

// The page's script. It filters rows by text, can show only what is not covered, and sorts the table of operations.
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
open.addEventListener('change', filter);
for (const table of document.querySelectorAll('table.sortable')) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  heads.forEach((head, at) => head.firstElementChild?.addEventListener('click', () => {
    const isUp = head.getAttribute('aria-sort') === 'descending' || (at === 0 && !head.hasAttribute('aria-sort'));
    for (const other of heads) other.removeAttribute('aria-sort');
    head.setAttribute('aria-sort', isUp ? 'ascending' : 'descending');
    const value = (row) => row.cells[at].dataset.value ?? row.cells[at].textContent;
    const order = (a, b) => at === 0 ? value(a).localeCompare(value(b)) : value(a) - value(b);
    body.append(...[...body.rows].sort((a, b) => isUp ? order(a, b) : order(b, a)));
  }));
}`;

/**
 * Renders one page without external files: the figures, the operations with the riskiest first, and each operation
 * with its used and unused parts.
 */
export function coverageHtml(measured: Measured, verdict: Verdict): string {
  const { rows, requests } = measured;
  const byOperation = Map.groupBy(
    rows.filter(({ dimension }) => dimension !== 'operations'),
    ({ operation, dimension }) => operation ?? dimensions[dimension],
  );
  const byRisk = riskOf(measured).map(({ operation }) => operation);
  const names = [...byRisk, ...[...byOperation.keys()].filter((name) => !byRisk.includes(name))];
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
${figureGroups(measured, verdict).map(figureTable).join('\n')}
${undocumentedList(measured)}
${riskTable(measured)}
<h2>Operations, events and decisions</h2>
<form>
<label>Filter <input id="text" type="search"></label>
<label><input id="open" type="checkbox"> only what is not covered</label>
</form>
${names.map((name) => group(name, byOperation.get(name)!)).join('\n')}
</main>
<script>${script}</script>
</body>
</html>
`;
}

function figureTable({ title: heading, figures }: ReturnType<typeof figureGroups>[number]): string {
  const lines = figures.map(({ title: name, covered, total, percent }) => {
    const title = escapeXml(name);
    return `<tr><th scope="row">${title}</th><td class="number">${covered} / ${total}</td><td class="number">${percent.toFixed(1)} %</td><td><progress max="${Math.max(total, 1)}" value="${covered}" aria-label="${title}"></progress></td></tr>`;
  });
  return `<table>
<thead><tr><th scope="col">${escapeXml(heading)}</th><th scope="col" class="number">covered</th><th scope="col" class="number">share</th><th scope="col"></th></tr></thead>
<tbody>
${lines.join('\n')}
</tbody>
</table>`;
}

/** An operation that was called, with the documented errors that no response had. */
interface Risk {
  readonly operation: string;
  readonly requests: number;
  readonly seen: number;
  readonly errors: number;
}

/**
 * Returns the operations that were called. Operations with the most documented errors that no response had come first,
 * and among equal ones the operations with the most calls.
 */
function riskOf(measured: Measured): Risk[] {
  const errors = Map.groupBy(
    measured.rows.filter(({ dimension }) => dimension === 'errors'),
    ({ operation }) => operation!,
  );
  return [...calledIn(measured)]
    .map(([operation, requests]) => {
      const own = errors.get(operation) ?? [];
      const seen = own.filter(({ count }) => count > 0).length;
      return { operation, requests, seen, errors: own.length };
    })
    .sort((a, b) => b.errors - b.seen - (a.errors - a.seen) || b.requests - a.requests);
}

function riskTable(measured: Measured): string {
  const lines = riskOf(measured).map(({ operation, requests, seen, errors }) => {
    const left = errors - seen;
    const numbers = [requests, seen, errors].map((value) => `<td class="number">${value}</td>`).join('');
    return `<tr><td><code>${escapeXml(operation)}</code></td>${numbers}<td class="number ${left > 0 ? 'bad' : 'good'}">${left}</td></tr>`;
  });
  if (lines.length === 0) return '';
  const heads = ['calls', 'errors met', 'errors documented'].map(
    (title) => `<th scope="col" class="number"><button type="button">${title}</button></th>`,
  );
  return `<h2>Errors that your tests never met</h2>
<table class="sortable">
<thead><tr><th scope="col"><button type="button">operation</button></th>${heads.join('')}<th scope="col" class="number" aria-sort="descending"><button type="button">never met</button></th></tr></thead>
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
    of: verdict.scope,
    called: calledIn(measured).size,
    figures: figuresOf(measured, verdict.scope),
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

/** Colors a string for a terminal. */
export type Paint = (color: 'bold' | 'green' | 'yellow' | 'red', text: string) => string;

/** Returns the figures and the problems as text for a terminal. */
export function coverageText(
  measured: Measured,
  verdict: Verdict,
  paint: Paint = (_color, text) => text,
): string {
  const listed = (title: string, names: readonly string[]): string[] => {
    const more = names.length - MAX_LISTED;
    const rest = more > 0 ? [`  … and ${more} more`] : [];
    return names.length === 0
      ? []
      : ['', `${title}:`, ...names.slice(0, MAX_LISTED).map((name) => `  ${name}`), ...rest];
  };
  const groups = figureGroups(measured, verdict).flatMap(({ title, figures }, index) => [
    ...(index === 0 ? [] : ['']),
    paint('bold', title),
    ...figures.map(({ title: name, covered, total, percent }) => {
      const share = `${covered} / ${total}`.padStart(11);
      const color = percent >= 80 ? 'green' : percent >= 40 ? 'yellow' : 'red';
      return `  ${name.padEnd(34)}  ${share}  ${paint(color, `${percent.toFixed(1)} %`.padStart(7))}`;
    }),
  ]);
  return [
    ...groups,
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
    ...figureGroups(measured, verdict).flatMap(({ title, figures }) => [
      '',
      `| ${title} | covered | |`,
      '|---|---:|---:|',
      ...figures.map(
        ({ title: name, covered, total, percent }) =>
          `| ${name} | ${covered} / ${total} | ${percent.toFixed(1)} % |`,
      ),
    ]),
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
  return `${requests} ${requests === 1 ? 'request' : 'requests'}${unknown}`;
}

interface TitledFigure extends Figure {
  readonly title: string;
}

/** Returns the figures under headings: first what the caller's operations offer, then the whole API document. */
function figureGroups(
  measured: Measured,
  { scope }: Verdict,
): readonly { readonly title: string; readonly figures: readonly TitledFigure[] }[] {
  const figures = figuresOf(measured, scope);
  const titled = (names: readonly (Dimension | 'all')[]): TitledFigure[] =>
    names.map((name) => ({ title: titleOf(name), ...figures[name] }));
  const all = Object.keys(dimensions) as Dimension[];
  if (scope === 'contract') return [{ title: 'Of the contract', figures: titled([...all, 'all']) }];
  const count = calledIn(measured).size;
  const called = count === 1 ? 'Of the operation that you call' : `Of the ${count} operations that you call`;
  return [
    { title: called, figures: titled([...perOperation, 'all']) },
    { title: 'Of the contract', figures: titled(all.filter((name) => !perOperation.includes(name))) },
  ];
}

export function contractDocument(): ContractDocument {
  return JSON.parse(readFileSync(join(packageRoot(), 'openapi', 'openapi.json'), 'utf8')) as ContractDocument;
}

export type Format = 'text' | 'json' | 'html' | 'junit' | 'sarif' | 'github';

export function renderCoverage(format: Format, measured: Measured, verdict: Verdict, paint?: Paint): string {
  if (format === 'text') return coverageText(measured, verdict, paint);
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
