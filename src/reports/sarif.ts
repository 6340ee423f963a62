import { createHash } from 'node:crypto';
import type { Check, Report } from './report.ts';

/** What did not pass as SARIF 2.1.0, which code scanning reads. */
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
    // The same finding of a later run has the same fingerprint, so that it is not reported as new.
    partialFingerprints: { 'finding/v1': createHash('sha256').update(`${rule}\n${name}`).digest('hex') },
    ...(file === undefined
      ? {}
      : {
          locations: [{ physicalLocation: { artifactLocation: { uri: file }, region: { startLine: 1 } } }],
        }),
  };
}
