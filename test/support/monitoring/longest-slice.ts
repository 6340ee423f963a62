interface Measured<Result> {
  readonly result: Result;
  /** The CPU time of the longest turn of the event loop, in ms. */
  readonly longestMs: number;
}

/**
 * Measures the longest time for which `work` blocks the thread. It counts the CPU time of the thread instead of the
 * elapsed time, which on a busy machine would include other programs.
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
