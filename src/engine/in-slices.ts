// The cost of a slice, in signature verifications. It takes 5 to 10 ms of CPU time.
const SLICE = 40;

const waiting: (() => void)[] = [];

/**
 * Waits until the event loop has run other work. Only one slice of all waiting work runs in each turn, because many
 * slices in a row would block the event loop too.
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
 * Runs work that yields the cost of each step, in signature verifications. Other requests run in between, so a
 * request with many signatures does not block them.
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
