import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setCoverageFolder } from '../config/client.ts';
import { exchangeOf } from '../tools/coverage/archive.ts';
import { judgeCoverage, type Scope, type Threshold } from '../tools/coverage/judge.ts';
import { measure, type Recorded } from '../tools/coverage/measure.ts';
import { contractDocument, type Format, renderCoverage } from '../tools/coverage/report.ts';
import type { CollectedLine } from './keep.ts';

export interface CoverageReporterOptions {
  /** The file of each report, such as `{ html: 'coverage/custos.html' }`. The figures are always printed. */
  readonly reports?: Readonly<Partial<Record<Format, string>>>;
  /** Whether only the operations that were called are counted, or the whole API document. Default: `called`. */
  readonly of?: Scope;
  /**
   * The minimum coverage of each dimension in percent, such as `{ errors: 40 }`. A lower coverage makes the run fail.
   */
  readonly failUnder?: Readonly<Partial<Record<Threshold['dimension'], number>>>;
}

/**
 * Creates a reporter for vitest, jest and Playwright: `reporters: ['default', 'custos/testing/reporter']`. It measures
 * which parts of the API document the tests covered, in all sandboxes of all workers together.
 *
 * NOTE: the runners call it with `new`, which yields the object that it returns. Jest passes its own configuration
 * first.
 */
function coverageReporter(first: CoverageReporterOptions = {}, second?: CoverageReporterOptions) {
  const options = second ?? first;
  const folder = mkdtempSync(join(tmpdir(), 'custos-coverage-'));
  // Workers are started later and inherit the environment.
  setCoverageFolder(folder);
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  const files = (): string[] =>
    globSync('*/requests.ndjson', { cwd: folder }).map((name) => join(folder, name));
  let hasFailed = false;
  let hasRun = false;
  let hasTests = false;
  const begin = (): void => {
    // The requests before the first run count as well, because a global set-up may have called a sandbox.
    if (hasRun) for (const file of files()) rmSync(file, { force: true });
  };
  const end = (): { readonly status: 'failed' } | undefined => {
    hasRun = true;
    hasFailed = report(files(), options);
    if (!hasFailed) return undefined;
    process.exitCode = 1;
    return { status: 'failed' };
  };
  return {
    /** Called by vitest. In watch mode, only the last run is measured. */
    onTestRunStart: begin,
    /** Called by jest. */
    onRunStart: begin,
    /** Called by Playwright. */
    onBegin: begin,
    /** Called by vitest at the end. */
    onTestRunEnd: () => void end(),
    /** Called by jest at the end. */
    onRunComplete: () => void end(),
    /**
     * Called by jest after `onRunComplete`. Jest fails if this returns an error, even with `--forceExit`, which ignores
     * `process.exitCode`.
     */
    getLastError: () =>
      hasFailed ? new Error('less of the contract is covered than `failUnder`') : undefined,
    /** Called by Playwright. */
    onTestBegin(): void {
      hasTests = true;
    },
    /**
     * Called by Playwright at the end. The status `failed` makes the run fail. With `--list`, no test begins, so
     * nothing is reported.
     */
    onEnd: () => (hasTests ? end() : undefined),
  };
}

/** Prints and writes the reports. Returns whether less is covered than the options demand. */
function report(
  files: readonly string[],
  { reports = {}, failUnder = {}, of: scope = 'called' }: CoverageReporterOptions,
): boolean {
  const recorded = readCollected(files);
  if (recorded.exchanges.length === 0) {
    process.stdout.write(
      '\ncustos: no sandbox of these tests was called, so nothing of the contract is covered\n',
    );
    return Object.keys(failUnder).length > 0;
  }
  const thresholds = Object.entries(failUnder).map(([dimension, percent]) => ({
    dimension: dimension as Threshold['dimension'],
    percent,
  }));
  const measured = measure(contractDocument(), recorded);
  const verdict = judgeCoverage(measured, { thresholds, baseline: undefined, scope });
  process.stdout.write(`\n${renderCoverage('text', measured, verdict)}\n\n`);
  for (const [format, file] of Object.entries(reports)) {
    writeFileSync(file, renderCoverage(format as Format, measured, verdict));
  }
  return verdict.faults.length > 0;
}

/** Reads what the sandboxes of all workers have collected. */
function readCollected(files: readonly string[]): Recorded {
  const exchanges: Recorded['exchanges'][number][] = [];
  const counts = new Map<string, { type: string; recorded: number; acknowledged: number }>();
  for (const file of files) {
    /** The latest counts of each stretch, which include the earlier ones. */
    const ofStretches = new Map<number, CollectedLine['eventCounts']>();
    for (const text of readFileSync(file, 'utf8').split('\n')) {
      if (text === '') continue;
      const line = JSON.parse(text) as CollectedLine;
      exchanges.push(...line.entries.flatMap((entry) => exchangeOf(entry)));
      ofStretches.set(line.stretch, line.eventCounts);
    }
    for (const { type, recorded, acknowledged } of [...ofStretches.values()].flat()) {
      const sum = counts.get(type) ?? { type, recorded: 0, acknowledged: 0 };
      sum.recorded += recorded;
      sum.acknowledged += acknowledged;
      counts.set(type, sum);
    }
  }
  return { exchanges, eventCounts: [...counts.values()] };
}

// biome-ignore lint/style/noDefaultExport: the test runners load reporters by it.
export { coverageReporter as default };
