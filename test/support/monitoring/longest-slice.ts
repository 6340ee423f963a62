interface Measured<Result> {
  readonly result: Result;
  /** Processor time of the longest turn of the event loop, in ms. */
  readonly longestMs: number;
}

/**
 * Measures how long `work` keeps the thread from everything else at once. Counts the processor time of the thread, not
 * the time of the clock: on a busy machine, the clock would count other programs.
 */
export async function longestSlice<Result>(work: () => Promise<Result>): Promise<Measured<Result>> {
  let longest = 0;
  let isDone = false;
  let last = cpuMs();
  const beat = (): void => {
    const now = cpuMs();
    longest = Math.max(longest, now - last);
    last = now;
    if (!isDone) setImmediate(beat);
  };
  setImmediate(beat);
  const result = await work();
  isDone = true;
  beat();
  return { result, longestMs: longest };
}

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
