import { packageVersion } from '../../package-root.ts';
import { junitOf } from '../../reports/junit.ts';
import { sarifOf } from '../../reports/sarif.ts';
import type { Change } from './change.ts';
import { diffMarkdown, diffReport, diffText } from './diff-report.ts';

/** `file`: the new document. */
export function renderDiff(
  format: 'text' | 'json' | 'markdown' | 'junit' | 'sarif',
  changes: readonly Change[],
  file: string,
): string {
  if (format === 'text') return diffText(changes);
  if (format === 'markdown') return diffMarkdown(changes);
  if (format === 'json') return JSON.stringify({ changes }, undefined, 2);
  const report = diffReport(changes, { file, version: packageVersion() });
  return format === 'junit' ? junitOf(report) : JSON.stringify(sarifOf(report), undefined, 2);
}
