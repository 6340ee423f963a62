/** After this time, a call pauses so that other work can run. */
const SLICE_MS = 10;

/** Makes a function that waits for the next turn of the event loop if the last wait was long ago. */
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
