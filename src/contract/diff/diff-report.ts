import type { Check, Report } from '../../reports/report.ts';
import { type Change, changeRules, type Severity } from './change.ts';

const titles: Readonly<Record<Severity, string>> = {
  breaking: 'Breaking changes',
  compatible: 'Compatible changes',
  text: 'Changed texts',
};
const severities = Object.keys(titles) as Severity[];

/** For JUnit and SARIF. Breaking changes fail, the others are only reported. `file`: the new document. */
export function diffReport(
  changes: readonly Change[],
  { file, version }: { readonly file: string; readonly version: string },
): Report {
  const none: Check = { name: 'no breaking change', outcome: 'passed' };
  return {
    tool: 'custos contract diff',
    version,
    rules: Object.entries(changeRules).map(([id, description]) => ({ id, description })),
    suites: severities.map((severity) => {
      const checks = of(changes, severity).map(
        ({ rule, place, message }): Check => ({
          name: `${place}: ${message}`,
          outcome: severity === 'breaking' ? 'failed' : 'skipped',
          finding: { rule, message },
          file,
        }),
      );
      const isSound = severity === 'breaking' && checks.length === 0;
      return { name: titles[severity].toLowerCase(), checks: isSound ? [none] : checks };
    }),
  };
}

/** One line for each change, and the sums. */
export function diffText(changes: readonly Change[]): string {
  const lines = changes.map(
    ({ severity, rule, place, message }) =>
      `${severity.padEnd(10)}  ${rule.padEnd(18)}  ${place}: ${message}`,
  );
  const sums = severities.map((severity) => `${of(changes, severity).length} ${severity}`).join(', ');
  return [...lines, ...(lines.length > 0 ? [''] : []), sums].join('\n');
}

export function diffMarkdown(changes: readonly Change[]): string {
  if (changes.length === 0) return 'The contract is unchanged.\n';
  const parts = severities.flatMap((severity) => {
    const own = of(changes, severity);
    if (own.length === 0) return [];
    return [
      `### ${titles[severity]}`,
      '',
      ...own.map(({ place, message }) => `- **${place}**: ${message}`),
      '',
    ];
  });
  return parts.join('\n');
}

function of(changes: readonly Change[], severity: Severity): Change[] {
  return changes.filter((change) => change.severity === severity);
}
