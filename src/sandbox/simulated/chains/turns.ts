/** A call pauses after this time, so that other work can run. */
const SLICE_MS = 10;

/**
 * Returns a function that waits for the next turn of the event loop if more than `SLICE_MS` have passed since the last
 * wait.
 */
export function makeTurns(): () => Promise<void> | undefined {
  let turnMs = performance.now() + SLICE_MS;
  return () => {
    if (performance.now() < turnMs) return undefined;
    return new Promise((resolve) =>
      setImmediate(() => {
        turnMs = performance.now() + SLICE_MS;
        resolve();
      }),
    );
  };
}
