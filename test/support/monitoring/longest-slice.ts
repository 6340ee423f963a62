/**
 * The longest that a test lets a request keep the thread, in ms of its CPU time: 50 by hand on a quiet machine
 * (`TEST_LONG=1`). On a machine whose cores and caches others use, the same work takes a multiple of that. Work that is
 * not split, or that is more than linear in its input, takes seconds.
 */
export const MAX_SLICE_MS = process.env.TEST_LONG === '1' ? 50 : 250;

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
