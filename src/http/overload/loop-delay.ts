/** How long received requests wait for the event loop. */
export interface LoopDelay {
  /**
   * The number of the current turn of the event loop, and how long it has been reading requests. All requests of a
   * turn had arrived when it began, so each has waited for at least this time.
   */
  current(): { readonly turn: number; readonly elapsedMs: number };
}

/**
 * Measures the turns of this process: a turn begins with its first request and ends when no more sockets are
 * readable.
 */
export function measureLoopDelay(): LoopDelay {
  let turn = 0;
  let startedMs: number | undefined;
  const end = (): void => {
    startedMs = undefined;
  };
  return {
    current() {
      const nowMs = performance.now();
      if (startedMs === undefined) {
        startedMs = nowMs;
        turn += 1;
        // Runs after all sockets that are readable now.
        setImmediate(end);
      }
      return { turn, elapsedMs: nowMs - startedMs };
    },
  };
}
