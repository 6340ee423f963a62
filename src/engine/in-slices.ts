// The cost of a slice, in signature verifications. A slice takes 5 to 10 ms of CPU time.
const SLICE = 40;

const waiting: (() => void)[] = [];

/**
 * Waits until the event loop has run other work. Each turn of the event loop continues only one of all that wait here,
 * because many slices in a row would block the loop too.
 */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    if (waiting.push(resolve) === 1) setImmediate(runOne);
  });
}

function runOne(): void {
  waiting.shift()?.();
  if (waiting.length > 0) setImmediate(runOne);
}

/**
 * Runs a generator that yields the cost of each step, in signature verifications. Pauses after each slice, so a
 * request with many signatures does not block other requests.
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
