import { setImmediate } from 'node:timers/promises';

// In verifications of a signature: 5 to 10 ms of CPU time.
const SLICE = 40;

/**
 * Runs work that yields what each of its steps cost, in verifications of a signature. Other requests run in between, so
 * a request with many signatures does not hold them up.
 */
export async function inSlices<Result>(work: Generator<number, Result>): Promise<Result> {
  let cost = 0;
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
    cost += step.value;
    if (cost < SLICE) continue;
    cost = 0;
    await setImmediate();
  }
}
