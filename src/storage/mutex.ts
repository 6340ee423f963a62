/** Admits callers one at a time, in the order of arrival. */
export interface Mutex {
  /** Undefined if the caller may proceed; otherwise a promise that resolves when the caller may. */
  acquire(): Promise<void> | undefined;
  /** Must be called once by each caller that has acquired the mutex. */
  release(): void;
}

/** Creates a free mutex. */
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
