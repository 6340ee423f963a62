/** Lets callers through one at a time, in the order in which they came. */
export interface Turnstile {
  /** `undefined` when the way is free, else a promise kept when it is this caller's turn. */
  enter(): Promise<void> | undefined;
  /** Called once by whoever entered. */
  leave(): void;
}

/** Makes a turnstile that nobody has entered. */
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
