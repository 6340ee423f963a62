/** A call pauses after this time, so that other work can run. */
const SLICE_MS = 10;

/** Returns a function that waits for the next turn of the event loop if the last wait was long enough ago. */
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
