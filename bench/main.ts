import { mkdirSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, totalmem } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import type { Bench } from './bench-case.ts';
import { cases } from './cases.ts';
import { printComparison, readGoals } from './compare.ts';
import { hangUp } from './measure/ask.ts';
import { startLoad } from './measure/load.ts';
import { canMeasureProcesses } from './measure/process-usage.ts';
import { buildBundle, installPeers, missingPeers } from './peers.ts';
import { type CaseResult, type Goal, goalsText, tableText } from './report.ts';

interface Flags {
  readonly rounds: number;
  readonly seconds: number;
  readonly warmUpSeconds: number;
  readonly starts: number;
  readonly only?: readonly string[];
  readonly json?: string;
  readonly short?: boolean;
  readonly compare?: string;
}

/** The cases of `--short`: ratios of CPU times, which are stable in short rounds. */
const shortCases = ['recorder', 'sqlite'];
const shortRounds = { rounds: 3, seconds: 0.7, warmUpSeconds: 3 };
const WARM_UP_SECONDS = 10;

const help = `
Cases:
${Object.entries(cases)
  .map(([name, { about }]) => `  ${name.padEnd(17)}${about}`)
  .join('\n')}

Examples:
  $ npm run bench
  $ npm run bench -- --only start-up --only stored
  $ npm run bench -- --rounds 2 --seconds 0.7       quicker, rougher
  $ npm run bench -- --short --compare before.json  a minute; warns of what got worse

Exit codes: 0 measured, whatever the goals say; 1 failed; 2 called wrongly.`;

function readFlags(args: readonly string[]): Flags {
  const program = new Command('bench')
    .description('Measures Custos side by side with what it is compared with, on this machine.')
    .helpOption('-h, --help', 'print this help')
    .option('--rounds <count>', 'rounds over all servers; the best of them counts', number(1, 50, true), 3)
    .option('--seconds <time>', 'how long each server is asked in each round', number(0.1, 30, false), 2)
    .option('--starts <count>', 'how often each server is started', number(1, 50, true), 7)
    .addOption(
      new Option('--only <case>', 'only this case; may be given again').argParser(
        (name: string, before: readonly string[] = []) => {
          if (!Object.hasOwn(cases, name))
            throw new InvalidArgumentError(`choose from ${Object.keys(cases).join(', ')}`);
          return [...before, name];
        },
      ),
    )
    .option('--json <file>', 'where the results are written (default: bench/results/<time>.json)')
    .option('--short', `only ${shortCases.join(', ')}, with few and short rounds`)
    .option('--compare <file>', 'print the change against the results in this file')
    .addHelpText('after', help)
    .showHelpAfterError('(see --help)')
    .exitOverride();
  program.parse(args, { from: 'user' });
  const flags = { ...program.opts<Flags>(), warmUpSeconds: WARM_UP_SECONDS };
  return flags.short === true ? { ...flags, only: shortCases, ...shortRounds } : flags;
}

function number(least: number, most: number, isWhole: boolean): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() !== '' && value >= least && value <= most && (!isWhole || Number.isInteger(value)))
      return value;
    throw new InvalidArgumentError(
      `expected ${isWhole ? 'a whole number' : 'a number'} from ${least} to ${most}`,
    );
  };
}

async function runCases(names: readonly string[], flags: Flags): Promise<Map<string, CaseResult>> {
  const results = new Map<string, CaseResult>();
  const load = startLoad();
  const bench: Bench = { ...flags, load, report: showProgress };
  try {
    for (const name of names) {
      console.error(`${name}: ${cases[name]?.about}`);
      const result = await (cases[name] as (typeof cases)[string]).run(bench);
      clearProgress();
      for (const table of result.tables) console.log(tableText(table));
      results.set(name, result);
    }
  } finally {
    clearProgress();
    load.stop();
    await hangUp();
  }
  return results;
}

function showProgress(progress: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K  ${progress}`);
  else console.error(`  ${progress}`);
}

function clearProgress(): void {
  if (process.stderr.isTTY) process.stderr.write('\r\x1b[K');
}

/** Above this many busy cores, elapsed times mostly measure other processes. */
const TOO_BUSY = 0.2;

function goalsOf(results: ReadonlyMap<string, CaseResult>): Goal[] {
  return [...results.values()].flatMap((result) => result.goals);
}

function printGoals(results: ReadonlyMap<string, CaseResult>): void {
  const goals = goalsOf(results);
  if (goals.length > 0) console.log(goalsText(goals));
  const missed = goals.filter(({ met }) => !met).length;
  if (goals.length > 0) console.log(`\n${goals.length - missed} of ${goals.length} met, ${missed} missed`);
  const busy = Math.max(0, ...[...results.values()].map(({ busyOthers = 0 }) => busyOthers));
  if (busy < TOO_BUSY) return;
  console.log(
    `NOTE: other processes kept ${busy.toFixed(1)} of ${cpus().length} cores busy. CPU times are then some tenths too high on all sides, figures per second and start-ups mean little.`,
  );
}

function writeResults(
  file: string,
  flags: Flags,
  results: ReadonlyMap<string, CaseResult>,
  startLoadAverage: number,
) {
  const [model] = cpus();
  const content = {
    at: new Date().toISOString(),
    machine: {
      cores: cpus().length,
      cpu: model?.model,
      memory_mb: Math.round(totalmem() / 1e6),
      node: process.versions.node,
      load_average_before: startLoadAverage,
      load_average_after: loadavg()[0],
    },
    options: { rounds: flags.rounds, seconds: flags.seconds, starts: flags.starts },
    cases: Object.fromEntries(results),
  };
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${JSON.stringify(content, undefined, 2)}\n`);
}

async function main(args: readonly string[]): Promise<number> {
  let flags: Flags;
  try {
    flags = readFlags(args);
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    throw error;
  }
  if (!canMeasureProcesses()) {
    console.error(
      'bench: CPU times of other processes are read from /proc, which this system does not have; run it on Linux',
    );
    return 1;
  }
  const names = Object.keys(cases).filter((name) => flags.only === undefined || flags.only.includes(name));
  try {
    const earlier = flags.compare === undefined ? undefined : readGoals(resolve(flags.compare));
    const missing = names.some((name) => cases[name]?.needsPeers) ? missingPeers() : [];
    if (missing.length > 0) {
      console.error(
        `bench: installing what is compared with into bench/node_modules (npm ci): ${missing.join(', ')}`,
      );
      await installPeers();
    }
    await buildBundle();
    const [loadBefore = 0] = loadavg();
    const results = await runCases(names, flags);
    printGoals(results);
    if (earlier !== undefined) printComparison(earlier, goalsOf(results));
    const stamp = new Date().toISOString().replaceAll(':', '-').slice(0, 19);
    const file =
      flags.json === undefined ? join(import.meta.dirname, 'results', `${stamp}.json`) : resolve(flags.json);
    writeResults(file, flags, results, loadBefore);
    return 0;
  } catch (error) {
    console.error('bench: failed;', error instanceof Error ? error.message : error);
    return 1;
  }
}

// The exit handler stops the servers, so a signal must end this process through `exit`.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
process.exit(await main(process.argv.slice(2)));
