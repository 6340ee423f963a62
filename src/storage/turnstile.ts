/** Admits callers one at a time, in the order of arrival. */
export interface Turnstile {
  /** Undefined if the caller may proceed; otherwise a promise that resolves when it is its turn. */
  enter(): Promise<void> | undefined;
  /** Called once by each caller that has entered. */
  leave(): void;
}

/** Creates an empty turnstile. */
export function makeTurnstile(): Turnstile {
  const waiting: (() => void)[] = [];
  let occupied = false;
  return {
    enter() {
      if (occupied) return new Promise((resolve) => waiting.push(resolve));
      occupied = true;
      return undefined;
    },
    leave() {
      const next = waiting.shift();
      if (next === undefined) occupied = false;
      else next();
    },
  };
}
