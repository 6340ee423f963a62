import type { Check, Report, Suite } from './report.ts';

/** The report as JUnit XML, in the form that CI services read. */
export function junitOf({ tool, suites }: Report): string {
  const checks = suites.flatMap((suite) => suite.checks);
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites ${attributes({ name: tool, ...totals(checks) })}>`,
    ...suites.flatMap(suiteLines),
    '</testsuites>',
    '',
  ].join('\n');
}

function suiteLines({ name, checks }: Suite): string[] {
  return [
    `  <testsuite ${attributes({ name, ...totals(checks), errors: 0 })}>`,
    ...checks.flatMap((check) => checkLines(name, check)),
    '  </testsuite>',
  ];
}

function checkLines(suite: string, { name, outcome, finding }: Check): string[] {
  const begin = `    <testcase ${attributes({ classname: suite, name })}`;
  if (outcome === 'passed') return [`${begin}/>`];
  const { rule = '', message = '', details = message } = finding ?? {};
  const element =
    outcome === 'skipped'
      ? `      <skipped ${attributes({ message })}/>`
      : `      <failure ${attributes({ type: rule, message })}>${escapeXml(details)}</failure>`;
  return [`${begin}>`, element, '    </testcase>'];
}

function totals(checks: readonly Check[]): Record<string, number> {
  const count = (outcome: Check['outcome']): number => checks.filter((one) => one.outcome === outcome).length;
  return { tests: checks.length, failures: count('failed'), skipped: count('skipped') };
}

function attributes(values: Readonly<Record<string, string | number>>): string {
  return Object.entries(values)
    .map(([name, value]) => `${name}="${escapeXml(String(value))}"`)
    .join(' ');
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
  '\n': '&#10;',
};

/** Text for XML 1.0 or HTML; characters that XML does not allow become `?`. */
export function escapeXml(text: string): string {
  return (
    text
      // biome-ignore lint/suspicious/noControlCharactersInRegex: XML 1.0 §2.2 excludes them.
      .replaceAll(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, '?')
      .toWellFormed()
      .replaceAll(/[&<>"'\n]/g, (character) => entities[character]!)
  );
}
