/** Lets callers proceed one at a time, in the order of arrival. */
export interface Mutex {
  /** Acquires the mutex. Returns undefined if the caller may proceed now, or a promise that resolves when it may. */
  acquire(): Promise<void> | undefined;
  /** Each caller that has acquired the mutex must call this once. */
  release(): void;
}

export function createMutex(): Mutex {
  const waiting: (() => void)[] = [];
  let occupied = false;
  return {
    acquire() {
      if (occupied) return new Promise((resolve) => waiting.push(resolve));
      occupied = true;
      return undefined;
    },
    release() {
      const next = waiting.shift();
      if (next === undefined) occupied = false;
      else next();
    },
  };
}

/** Returns a function that runs work when fewer than `max` others run, in the order of the calls. */
export function limitTo(max: number): <Result>(work: () => Promise<Result>) => Promise<Result> {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async (work) => {
    if (running < max) running += 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await work();
    } finally {
      // The next one takes the place over, so that no other comes between.
      const next = waiting.shift();
      if (next === undefined) running -= 1;
      else next();
    }
  };
}
