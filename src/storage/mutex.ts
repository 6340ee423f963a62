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
