import { createHash } from 'node:crypto';

/** The results of a command, for the formats that other programs read. */
export interface Report {
  /** The name of the tool, such as `custos coverage`. */
  readonly tool: string;
  readonly version: string;
  readonly rules: readonly Rule[];
  readonly suites: readonly Suite[];
}

/** A kind of finding. */
interface Rule {
  readonly id: string;
  readonly description: string;
}

/** A group of checks. */
export interface Suite {
  readonly name: string;
  readonly checks: readonly Check[];
}

export interface Check {
  readonly name: string;
  /** `failed` makes the build fail. `skipped` is reported, but does not make it fail. */
  readonly outcome: 'passed' | 'failed' | 'skipped';
  /** For a check that did not pass: the id of its rule, and the expected and observed values. */
  readonly finding?: { readonly rule: string; readonly message: string; readonly details?: string };
  /** The file that the finding is about. */
  readonly file?: string | undefined;
}

/** Renders the report as JUnit XML, in the form that CI services read. */
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

/** Escapes text for XML 1.0 or HTML. Characters that XML does not allow become `?`. */
export function escapeXml(text: string): string {
  return (
    text
      // biome-ignore lint/suspicious/noControlCharactersInRegex: XML 1.0 §2.2 excludes them.
      .replaceAll(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, '?')
      .toWellFormed()
      .replaceAll(/[&<>"'\n]/g, (character) => entities[character]!)
  );
}

/** Renders the failed checks as SARIF 2.1.0, for code scanning. */
export function sarifOf({ tool, version, rules, suites }: Report): object {
  const results = suites.flatMap(({ checks }) => checks).filter(({ outcome }) => outcome !== 'passed');
  return {
    $schema: 'https://json.schemastore.org/sarif-2.1.0.json',
    version: '2.1.0',
    runs: [
      {
        tool: {
          driver: {
            name: tool,
            version,
            rules: rules.map(({ id, description }) => ({ id, shortDescription: { text: description } })),
          },
        },
        results: results.map(resultOf),
      },
    ],
  };
}

function resultOf({ name, outcome, finding, file }: Check): object {
  const { rule = '', message = '' } = finding ?? {};
  return {
    ruleId: rule,
    level: outcome === 'failed' ? 'error' : 'note',
    message: { text: `${name}: ${message}` },
    // A finding has the same fingerprint in every run, so that it is not reported as new.
    partialFingerprints: { 'finding/v1': createHash('sha256').update(`${rule}\n${name}`).digest('hex') },
    ...(file === undefined
      ? {}
      : {
          locations: [{ physicalLocation: { artifactLocation: { uri: file }, region: { startLine: 1 } } }],
        }),
  };
}
