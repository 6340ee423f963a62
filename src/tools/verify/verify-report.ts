import { packageVersion } from '../../config/package-root.ts';
import { type Check, junitOf, type Report, sarifOf } from '../reports.ts';
import { type Finding, verifyRules } from './judge-exchange.ts';

/** A finding, how many times it occurred, and the first request in which it occurred. */
export interface CountedFinding extends Finding {
  readonly count: number;
  readonly example: string;
}

/** The findings so far. */
export interface Verification {
  readonly requests: number;
  /** The number of requests that match an operation. */
  readonly judged: number;
  readonly findings: readonly CountedFinding[];
}

const MAX_FINDINGS = 1_000;

/** Returns a collector that counts findings, and merges equal findings about the same operation. */
export function collectFindings() {
  const found = new Map<string, CountedFinding>();
  let [requests, judged] = [0, 0];
  return {
    /**
     * Counts the findings about one request. With `isRequest: false`, the request itself is not counted, because it
     * already was.
     */
    add(findings: readonly Finding[], example: string, isOperation: boolean, isRequest = true): void {
      if (isRequest) requests += 1;
      if (isOperation) judged += 1;
      for (const finding of findings) {
        const key = `${finding.rule} ${finding.place} ${finding.message}`;
        const { count = 0, example: first = example } = found.get(key) ?? {};
        if (count > 0 || found.size < MAX_FINDINGS)
          found.set(key, { ...finding, count: count + 1, example: first });
      }
    },
    verification: (): Verification => ({ requests, judged, findings: [...found.values()] }),
  };
}

export function renderVerification(
  format: 'text' | 'json' | 'junit' | 'sarif',
  verification: Verification,
): string {
  if (format === 'text') return textOf(verification);
  if (format === 'json') return JSON.stringify(verification, undefined, 2);
  const report = reportOf(verification);
  return format === 'junit' ? junitOf(report) : JSON.stringify(sarifOf(report), undefined, 2);
}

function textOf({ requests, judged, findings }: Verification): string {
  const errors = findings.filter(({ severity }) => severity === 'error').length;
  return [
    ...findings.map(findingLine),
    ...(findings.length > 0 ? [''] : []),
    `${counted(requests, 'request')}, ${judged} to operations of the contract: ${counted(errors, 'error')}, ${counted(findings.length - errors, 'notice')}`,
  ].join('\n');
}

function timesText(count: number): string {
  return count === 1 ? 'once' : `${count} times`;
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

function findingLine({ severity, rule, place, message, count, example }: CountedFinding): string {
  return `${severity.padEnd(6)}  ${rule.padEnd(19)}  ${place}: ${message} (${timesText(count)}, first ${example})`;
}

function reportOf({ judged, findings }: Verification): Report {
  const checks = findings.map(
    ({ severity, rule, place, message, count, example }): Check => ({
      name: `${place}: ${message}`,
      outcome: severity === 'error' ? 'failed' : 'skipped',
      finding: { rule, message, details: `${message}\n${timesText(count)}, first ${example}` },
      file: 'openapi/openapi.json',
    }),
  );
  const all: Check = { name: `${judged} requests were compared with the contract`, outcome: 'passed' };
  return {
    tool: 'custos verify',
    version: packageVersion(),
    rules: Object.entries(verifyRules).map(([id, description]) => ({ id, description })),
    suites: [{ name: 'contract', checks: [all, ...checks] }],
  };
}
