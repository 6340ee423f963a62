import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, tmpdir, totalmem } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { readProgress } from './figure.ts';
import { pageText } from './page.ts';
import { folder, type Result, readResult, resultFile, root } from './results.ts';
import { type Figure, figures } from './rows.ts';

/*
 * npm run figures                         lists the figures and their last results
 * npm run figures -- kills                runs one in its long form, and keeps the result
 * npm run figures -- kills --size 50      with another size
 * npm run figures -- equal-to-anvil            goes on where an interrupted run of the same commit and size ended
 * npm run figures -- equal-to-anvil --continue goes on where the kept result ended, maybe of another commit
 * npm run figures -- simulation --minutes 30   as many as there is time for
 * npm run figures -- simulation -- --workers 2   with more arguments for its program
 * npm run figures -- --page               writes docs/figures/README.md again
 */

const { values, positionals } = parseArgs({
  options: {
    size: { type: 'string' },
    minutes: { type: 'string', default: 'Infinity' },
    page: { type: 'boolean', default: false },
    continue: { type: 'boolean', default: false },
  },
  allowPositionals: true,
});

const [name, ...more] = positionals;

/** How long a test may take that has no limit of its own. */
const MAX_TEST_MS = 3_600_000;

type Measured = Pick<Result, 'outcome' | 'tests' | 'measured' | 'failures' | 'size'>;

/** Where a run writes. */
interface Scratch {
  readonly notes: string;
  readonly report: string;
  /** What a run keeps that does not end; absent where the tree has changes, which a later run may not have. */
  readonly progress?: string;
}

async function run(figure: Figure, size: number | undefined): Promise<Result> {
  const scratchFolder = mkdtempSync(join(tmpdir(), 'custos-figures-'));
  const [began, beganMs, loadBefore] = [new Date().toISOString(), performance.now(), loadOfMinute()];
  const state = treeState();
  const progress = join(root, 'reports', 'figures', `${figure.name}-${size ?? 'all'}-${state.commit}.json`);
  if (values.continue && !state.isClean) throw new Error('--continue expects a tree without changes');
  const before = values.continue ? partsOf(readResult(figure.name)) : [];
  if (before.length > 0 && state.isClean && !existsSync(progress)) writeProgress(progress, before);
  const earlier = state.isClean ? readProgress(progress) : undefined;
  if (earlier !== undefined)
    process.stderr.write(`goes on after ${earlier.seconds} s: ${JSON.stringify(earlier.state)}\n`);
  const scratch = {
    ...{ notes: join(scratchFolder, 'notes'), report: join(scratchFolder, 'report.json') },
    ...(state.isClean ? { progress } : {}),
  };
  try {
    const done = await measure(figure, size, scratch);
    const seconds = Math.round((performance.now() - beganMs) / 1000) + (earlier?.seconds ?? 0);
    return {
      figure: figure.name,
      date: began,
      ...state,
      machine: machineWith(loadBefore),
      command: commandOf(figure, size),
      ...(size === undefined ? {} : { size }),
      ...done,
      ...(before.length === 0 ? {} : { measured: [...before, newPart(done, before, { ...state, seconds })] }),
      seconds,
    };
  } finally {
    rmSync(scratchFolder, { recursive: true, force: true });
  }
}

type Part = Readonly<Record<string, unknown>>;

/** What a kept result has measured, by commit. */
function partsOf(result: Result | undefined): Part[] {
  if (result?.outcome !== 'passed') return [];
  const { date, commit, seconds } = result;
  return result.measured.map((part) => ({ commit, date: date.slice(0, 10), seconds, ...part }));
}

const sumOf = (name: string, parts: readonly Part[]): number =>
  parts.reduce((sum, part) => sum + Number(part[name] ?? 0), 0);

function writeProgress(file: string, parts: readonly Part[]): void {
  const names = parts.flatMap((part) => Object.keys(part).filter((name) => typeof part[name] === 'number'));
  const { seconds, ...state } = Object.fromEntries(names.map((name) => [name, sumOf(name, parts)]));
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, JSON.stringify({ seconds, state }));
}

/** What a run has added to the earlier parts. */
function newPart(
  { measured }: Measured,
  before: readonly Part[],
  { commit, seconds }: { commit: string; seconds: number },
): Part {
  const added = Object.entries(measured[0] ?? {}).map(([name, value]) => [
    name,
    typeof value === 'number' ? value - sumOf(name, before) : value,
  ]);
  const date = new Date().toISOString().slice(0, 10);
  return { commit, date, seconds: seconds - sumOf('seconds', before), ...Object.fromEntries(added) };
}

function commandOf(figure: Figure, size: number | undefined): string {
  const chosen = size === undefined || size === figure.size?.long ? [] : ['--size', String(size)];
  const added = more.length === 0 ? [] : ['--', ...more];
  const continued = values.continue ? ['--continue'] : [];
  return ['npm run figures --', figure.name, ...chosen, ...continued, ...added].join(' ');
}

function measure(figure: Figure, size: number | undefined, scratch: Scratch): Promise<Measured> {
  const { measurement } = figure;
  if (measurement.by === 'tests') return runTests(measurement, size, scratch);
  if (measurement.by === 'bench') return runBench(measurement, scratch);
  return runProgram(measurement.args, size, scratch);
}

async function runTests(
  { files, filter, isShort = false }: Extract<Figure['measurement'], { by: 'tests' }>,
  size: number | undefined,
  { notes, report, progress }: Scratch,
): Promise<Measured> {
  const args = [
    ...['run', ...files, ...(files.length === 0 ? [] : ['--maxWorkers=1']), '--reporter=default'],
    // No result depends on how busy the machine is.
    ...[`--testTimeout=${MAX_TEST_MS}`, `--hookTimeout=${MAX_TEST_MS}`],
    ...['--reporter=json', `--outputFile=${report}`, ...(filter === undefined ? [] : ['-t', filter])],
  ];
  const env = {
    ...{ FIGURE_FILE: notes, ...(isShort ? {} : { TEST_LONG: '1' }) },
    ...(size === undefined ? {} : { FIGURE_SIZE: String(size) }),
    ...(progress === undefined ? {} : { FIGURE_PROGRESS: progress }),
  };
  const code = await start(join(root, 'node_modules', 'vitest', 'vitest.mjs'), args, env);
  const { numPassedTests, numFailedTests, numPendingTests, testResults } = existsSync(report)
    ? (JSON.parse(readFileSync(report, 'utf8')) as VitestReport)
    : noReport;
  const failures = testResults.flatMap(({ name, status: outcome, message, assertionResults }) => {
    const failed = assertionResults.filter(({ status }) => status === 'failed');
    // A file fails without a failed test if what precedes its tests fails.
    if (outcome === 'failed' && failed.length === 0)
      return [`${relative(root, name)}: ${firstLine(message)}`];
    return failed.map(({ fullName, failureMessages }) => `${fullName}: ${firstLine(failureMessages[0])}`);
  });
  const hasPassed = code === 0 && numFailedTests === 0 && numPassedTests > 0;
  // A run that failed begins with the case that failed.
  if (hasPassed && progress !== undefined) rmSync(progress, { force: true });
  return {
    outcome: hasPassed ? 'passed' : 'failed',
    tests: { passed: numPassedTests, failed: numFailedTests, skipped: numPendingTests },
    measured: readLines(notes),
    failures,
  };
}

interface VitestReport {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly numPendingTests: number;
  readonly testResults: readonly {
    /** The file. */
    readonly name: string;
    readonly status: string;
    readonly message: string;
    readonly assertionResults: readonly {
      readonly fullName: string;
      readonly status: string;
      readonly failureMessages: readonly string[];
    }[];
  }[];
}

const noReport: VitestReport = { numPassedTests: 0, numFailedTests: 0, numPendingTests: 0, testResults: [] };

const firstLine = (text = ''): string => text.split('\n')[0]!.slice(0, 300);

async function runProgram(
  [script = '', ...args]: readonly string[],
  size: number | undefined,
  { report }: Scratch,
): Promise<Measured> {
  const filled = args.map((each) =>
    each.replace('%size', String(size)).replace('%minutes', values.minutes).replace('%out', report),
  );
  const code = await start(join(root, script), [...filled, ...more], {});
  const measured = existsSync(report) ? JSON.parse(readFileSync(report, 'utf8')) : {};
  const {
    failures = [],
    size: done,
    ...rest
  } = measured as {
    failures?: readonly unknown[];
    size?: number;
  };
  return {
    outcome: code === 0 ? 'passed' : 'failed',
    ...(done === undefined ? {} : { size: done }),
    measured: [rest],
    failures: failures.map((each) => (typeof each === 'string' ? each : JSON.stringify(each))),
  };
}

interface BenchReport {
  readonly cases: Readonly<
    Record<
      string,
      {
        readonly goals: readonly {
          readonly id: string;
          readonly what: string;
          readonly measured: number;
          readonly limit: number;
          readonly direction: string;
          readonly unit: string;
          readonly met: boolean;
        }[];
      }
    >
  >;
}

async function runBench(
  { cases, flags = [] }: Extract<Figure['measurement'], { by: 'bench' }>,
  { report }: Scratch,
): Promise<Measured> {
  const only = cases.flatMap((name) => ['--only', name]);
  const code = await start(join(root, 'bench', 'main.ts'), [...only, ...flags, '--json', report], {});
  const { cases: done } = existsSync(report)
    ? (JSON.parse(readFileSync(report, 'utf8')) as BenchReport)
    : { cases: {} };
  const goals = Object.values(done).flatMap((each) => each.goals.filter(({ id }) => id === 'figure'));
  const texts = goals.map(({ what, measured, unit, direction, limit }) => ({
    [what]: `${measured.toFixed(2)} ${unit} (${direction} ${limit})`,
  }));
  const missed = goals.filter(({ met }) => !met).map(({ what }) => what);
  return {
    outcome: code === 0 && missed.length === 0 && goals.length > 0 ? 'passed' : 'failed',
    measured: texts,
    failures: missed,
  };
}

/** Runs a script of Node to its end; its output is shown on standard error. */
function start(
  script: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<number> {
  const child = spawn(process.execPath, [script, ...args], {
    ...{ cwd: root, env: { ...process.env, ...env } },
    stdio: ['ignore', 2, 2],
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => resolve(code ?? 1));
  });
}

function readLines(file: string): Record<string, unknown>[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').split('\n').filter(Boolean);
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}

const loadOfMinute = (): number => Math.round((loadavg()[0] ?? 0) * 100) / 100;

function machineWith(loadBefore: number): Result['machine'] {
  return {
    cores: cpus().length,
    cpu: cpus()[0]?.model ?? 'unknown',
    memoryMb: Math.round(totalmem() / 1e6),
    node: process.versions.node,
    ...{ loadBefore, loadAfter: loadOfMinute() },
  };
}

function treeState(): Pick<Result, 'commit' | 'isClean'> {
  const git = (...args: string[]): string =>
    execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();
  // Results of other figures are no change of the program.
  const changed = git('status', '--porcelain')
    .split('\n')
    .filter((line) => line !== '' && !line.includes('docs/figures/'));
  return { commit: git('rev-parse', '--short=10', 'HEAD'), isClean: changed.length === 0 };
}

function writePage(): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'README.md'), pageText());
}

function list(): void {
  for (const { name, title, size } of figures) {
    const result = readResult(name);
    const last =
      result === undefined
        ? 'not run'
        : `${result.outcome} ${result.date.slice(0, 10)}${result.size === undefined ? '' : ` (${result.size})`}`;
    process.stdout.write(
      `${name.padEnd(18)} ${last.padEnd(28)} ${title}${size === undefined ? '' : ` (${size.long} ${size.unit})`}\n`,
    );
  }
}

async function main(): Promise<number> {
  if (values.page) writePage();
  if (name === undefined) {
    if (!values.page) list();
    return 0;
  }
  const figure = figures.find((each) => each.name === name);
  if (figure === undefined) {
    process.stderr.write(
      `no figure \`${name}\`; expected one of ${figures.map((each) => each.name).join(', ')}\n`,
    );
    return 2;
  }
  if (more.length > 0 && figure.measurement.by !== 'program') {
    process.stderr.write(`\`${name}\` takes no more arguments; got \`${more.join(' ')}\`\n`);
    return 2;
  }
  const size = values.size === undefined ? figure.size?.long : Number(values.size);
  const result = await run(figure, size);
  mkdirSync(folder, { recursive: true });
  writeFileSync(resultFile(name), `${JSON.stringify(result, undefined, 2)}\n`);
  writePage();
  process.stdout.write(`${JSON.stringify(result, undefined, 2)}\n`);
  return result.outcome === 'passed' ? 0 : 1;
}

process.exit(await main());
