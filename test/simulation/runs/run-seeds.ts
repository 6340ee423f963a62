import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { FailedSeed, simulate } from '../simulate.ts';
import { noSeeds, sumOf, type Tally, tallyOf } from './tally.ts';

/** Seeds that follow each other. */
export interface Slice {
  readonly from: number;
  readonly count: number;
  readonly steps: number;
}

export interface SeedsOptions extends Slice {
  /** Processes, each with its own seeds. */
  readonly workers: number;
  /** When to begin no further seed, as `performance.now()`. */
  readonly endMs: number;
  onProgress(done: Tally): void;
}

/** Seeds that a worker takes at once. */
const SLICE = 10;

type RunSlice = (slice: Slice) => Promise<Tally>;

/** Runs seeds from the first on: all of them, or as many as there is time for. */
export async function runSeeds(options: SeedsOptions): Promise<Tally> {
  const { from, count, steps, workers, endMs, onProgress } = options;
  let next = from;
  let done = noSeeds;
  async function runAll(run: RunSlice): Promise<void> {
    while (next < from + count && performance.now() < endMs) {
      const slice = { from: next, count: Math.min(SLICE, from + count - next), steps };
      next += slice.count;
      const tally = await run(slice);
      done = sumOf([done, tally]);
      onProgress(done);
    }
  }
  if (workers === 1) {
    await runAll(runSlice);
    return done;
  }
  const children = Array.from({ length: workers }, () => fork(join(import.meta.dirname, 'worker.ts')));
  try {
    await Promise.all(children.map((child) => runAll((slice) => askWorker(child, slice))));
  } finally {
    for (const child of children) child.kill();
  }
  return done;
}

async function askWorker(child: ChildProcess, slice: Slice): Promise<Tally> {
  const answered = new AbortController();
  const { signal } = answered;
  const ended = once(child, 'exit', { signal }).then(() => {
    throw new Error(`the worker has ended; it had ${slice.count} seeds from ${slice.from}`);
  });
  child.send(slice);
  try {
    const [answer] = await Promise.race([once(child, 'message', { signal }), ended]);
    return answer as Tally;
  } finally {
    // Without its listeners, one for each slice would stay.
    ended.catch(() => undefined);
    answered.abort();
  }
}

/** Runs seeds one after the other, and says on standard error which fail. */
export async function runSlice({ from, count, steps }: Slice): Promise<Tally> {
  const tallies: Tally[] = [];
  for (let index = 0; index < count; index += 1) {
    const seed = String(from + index);
    try {
      tallies.push(tallyOf(await simulate(seed, steps)));
    } catch (error) {
      if (!(error instanceof FailedSeed)) throw error;
      process.stderr.write(`${error.message}\n`);
      const failure = { seed, message: error.message.split('\n')[0]! };
      tallies.push({ ...noSeeds, size: 1, failures: [failure] });
    }
  }
  return sumOf(tallies);
}
