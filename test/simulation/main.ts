import { execFileSync } from 'node:child_process';
import { appendFileSync, writeFileSync } from 'node:fs';
import { arch, cpus, platform } from 'node:os';
import { inspect, parseArgs } from 'node:util';
import { addChunk, type Chunk, readChunks, seedAfter, sumOfChunks } from './runs/chunks.ts';
import { runSeeds } from './runs/run-seeds.ts';
import type { Tally } from './runs/tally.ts';
import { FailedSeed, simulate } from './simulate.ts';

/*
 * node test/simulation/main.ts --seed 17 --steps 200            one seed, twice: same hash, or what fails; --log writes all that happened
 * node test/simulation/main.ts --seeds 1000 --from 1            many seeds; --out writes the result as JSON, --minutes ends it in time
 * node test/simulation/main.ts --seeds 1000 --workers 2         in two processes
 * node test/simulation/main.ts --seeds 100000 --chunks FILE     adds what each 500 seeds came to to a file, and begins after the seeds in it
 * node test/simulation/main.ts --sum FILE                       what all chunks of a file came to
 */

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    seeds: { type: 'string', default: '1000' },
    from: { type: 'string', default: '1' },
    steps: { type: 'string', default: '200' },
    minutes: { type: 'string', default: 'Infinity' },
    workers: { type: 'string', default: '1' },
    chunks: { type: 'string' },
    sum: { type: 'string' },
    out: { type: 'string' },
    log: { type: 'string' },
  },
});
const steps = Number(values.steps);
const endMs = performance.now() + Number(values.minutes) * 60_000;
/** Of the program that runs. */
const state = treeState();
const yearMs = 365.25 * 24 * 3_600_000;

/** Seeds of a chunk: some minutes. */
const CHUNK = 500;
/** Seeds after which progress is shown. */
const SHOWN = 50;

async function runOne(seed: string): Promise<boolean> {
  try {
    const { log } = values;
    if (log !== undefined) writeFileSync(log, '');
    const onLine = log === undefined ? undefined : (line: string) => appendFileSync(log, `${line}\n`);
    const first = await simulate(seed, steps, onLine);
    const again = await simulate(seed, steps);
    const isSame = first.hash === again.hash;
    process.stdout.write(`${JSON.stringify({ ...first, isSame }, undefined, 2)}\n`);
    return isSame;
  } catch (error) {
    if (!(error instanceof FailedSeed)) throw error;
    process.stderr.write(`${error.message}\n${inspect(error.cause)}\n`);
    return false;
  }
}

/** Runs seeds, and says where, when and how long. */
async function runChunk(from: number, count: number): Promise<Chunk> {
  const [beganMs, date] = [performance.now(), new Date().toISOString()];
  if (JSON.stringify(treeState()) !== JSON.stringify(state)) throw new Error('the working tree has changed');
  let shown = 0;
  const tally = await runSeeds({
    ...{ from, count, steps, endMs, workers: Number(values.workers) },
    onProgress({ size, failures }) {
      if (size - shown < SHOWN) return;
      shown = size;
      process.stderr.write(`${size} of ${count} seeds, ${failures.length} failed\n`);
    },
  });
  const machine = `${cpus().length} × ${cpus()[0]?.model ?? 'unknown'}, ${platform()} ${arch()}, node ${process.version}`;
  const seconds = Math.round((performance.now() - beganMs) / 1000);
  return { ...tally, from, steps, date, ...state, machine, seconds };
}

async function runMany(count: number, from: number): Promise<boolean> {
  const { date, ...chunk } = await runChunk(from, count);
  return report({ date: date.slice(0, 10), ...chunk });
}

async function runChunks(file: string, count: number, first: number): Promise<boolean> {
  for (;;) {
    const from = seedAfter(readChunks(file), first);
    const left = first + count - from;
    if (left <= 0 || performance.now() >= endMs) break;
    const chunk = await runChunk(from, Math.min(CHUNK, left));
    if (chunk.size > 0) addChunk(file, chunk);
  }
  return report(sumOfChunks(readChunks(file)));
}

/** Prints the result, and writes it to a file if that is wanted. */
function report({ failures, virtualMs, ...rest }: Tally & Readonly<Record<string, unknown>>): boolean {
  const virtualYears = Math.round((virtualMs / yearMs) * 10) / 10;
  const text = `${JSON.stringify({ figure: 'simulation', failures, virtualYears, ...rest }, undefined, 2)}\n`;
  process.stdout.write(text);
  if (values.out !== undefined) writeFileSync(values.out, text);
  return failures.length === 0;
}

function treeState(): Pick<Chunk, 'commit' | 'isClean'> {
  const git = (...args: string[]): string => execFileSync('git', args, { encoding: 'utf8' }).trim();
  return { commit: git('rev-parse', '--short', 'HEAD'), isClean: git('status', '--porcelain') === '' };
}

async function main(): Promise<boolean> {
  if (values.seed !== undefined) return runOne(values.seed);
  if (values.sum !== undefined) return report(sumOfChunks(readChunks(values.sum)));
  const [count, from] = [Number(values.seeds), Number(values.from)];
  return values.chunks === undefined ? runMany(count, from) : runChunks(values.chunks, count, from);
}

process.exit((await main()) ? 0 : 1);
