// In signature verifications: 5 to 10 ms of CPU time.
const SLICE = 40;

const waiting: (() => void)[] = [];

/**
 * Only one slice of all waiting work runs in each turn of the event loop, because many slices together would block it
 * as well.
 */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    if (waiting.push(resolve) === 1) setImmediate(runOne);
  });
}

function runOne(): void {
  waiting.shift()?.();
  if (waiting.length > 0) setImmediate(runOne);
}

/**
 * Runs work that yields the cost of each of its steps, in signature verifications. Other requests run in between, so
 * a request with many signatures does not block them.
 */
export async function inSlices<Result>(work: Generator<number, Result>): Promise<Result> {
  let cost = 0;
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
    cost += step.value;
    if (cost < SLICE) continue;
    cost = 0;
    await nextTurn();
  }
}
