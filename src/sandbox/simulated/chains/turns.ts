/** The work of one call gives other work a turn after this long. */
const SLICE_MS = 10;

/** Makes a function that waits for a turn of the event loop when the last one was long ago. */
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
