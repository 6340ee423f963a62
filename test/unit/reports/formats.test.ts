import { expect, test } from 'vitest';
import { escapeXml, junitOf, type Report, sarifOf } from '../../../src/tools/reports.ts';

const report: Report = {
  tool: 'custos test',
  version: '1.2.3',
  rules: [{ id: 'wrong', description: 'Something is wrong.' }],
  suites: [
    {
      name: 'one & two',
      checks: [
        { name: 'fine', outcome: 'passed' },
        {
          name: 'bad <b>',
          outcome: 'failed',
          finding: { rule: 'wrong', message: 'a "quote"', details: 'a\nb' },
          file: 'x.json',
        },
        { name: 'later', outcome: 'skipped', finding: { rule: 'wrong', message: 'not now' } },
      ],
    },
  ],
};

test('JUnit counts checks and escapes text', () => {
  expect(junitOf(report)).toBe(`<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="custos test" tests="3" failures="1" skipped="1">
  <testsuite name="one &amp; two" tests="3" failures="1" skipped="1" errors="0">
    <testcase classname="one &amp; two" name="fine"/>
    <testcase classname="one &amp; two" name="bad &lt;b&gt;">
      <failure type="wrong" message="a &quot;quote&quot;">a&#10;b</failure>
    </testcase>
    <testcase classname="one &amp; two" name="later">
      <skipped message="not now"/>
    </testcase>
  </testsuite>
</testsuites>
`);
});

test('text that XML does not allow is replaced', () => {
  expect(escapeXml('a\u0000b\ud800')).toBe('a?b\ufffd');
});

test('SARIF lists what did not pass, with a stable fingerprint', () => {
  const { runs } = sarifOf(report) as { runs: { results: Record<string, unknown>[]; tool: unknown }[] };
  expect(runs[0]!.tool).toEqual({
    driver: {
      name: 'custos test',
      version: '1.2.3',
      rules: [{ id: 'wrong', shortDescription: { text: 'Something is wrong.' } }],
    },
  });
  expect(runs[0]!.results).toMatchObject([
    {
      ruleId: 'wrong',
      level: 'error',
      message: { text: 'bad <b>: a "quote"' },
      locations: [{ physicalLocation: { artifactLocation: { uri: 'x.json' } } }],
    },
    { ruleId: 'wrong', level: 'note', message: { text: 'later: not now' } },
  ]);
  expect(sarifOf(report)).toEqual(sarifOf(report));
});
