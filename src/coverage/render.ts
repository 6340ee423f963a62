import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ContractDocument } from '../contract/contract-document.ts';
import { packageRoot } from '../package-root.ts';
import { junitOf } from '../reports/junit.ts';
import { sarifOf } from '../reports/sarif.ts';
import { coverageHtml } from './coverage-html.ts';
import { coverageJson, coverageMarkdown, coverageReport, coverageText } from './coverage-report.ts';
import type { Verdict } from './judge.ts';
import type { Measured } from './measure.ts';

/** The published document of the contract. */
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
