import { ApiError } from '../errors.ts';

/** Makes requests wait while the whole state of the server is saved or replaced. */
export interface RequestGate {
  /**
   * Lets a request in. If the gate is closed, waits until it opens and returns true. `leave` must be called when the
   * request ends.
   */
  enter(): Promise<boolean>;
  leave(): void;
  /**
   * Closes the gate, waits for the requests in progress, and runs `work`. Then the gate opens again. Only one `work`
   * runs at a time.
   *
   * @throws ApiError unavailable if a request in progress does not end in time. `work` has then not run.
   */
  whileHeld<T>(work: () => Promise<T>): Promise<T>;
}

/**
 * Creates an open gate.
 *
 * @param drainMs how long to wait for the requests in progress.
 */
export function createRequestGate(drainMs: number): RequestGate {
  let inProgress = 0;
  let held: PromiseWithResolvers<void> | undefined;
  let drained: (() => void) | undefined;
  let last: Promise<unknown> = Promise.resolve();

  const drain = (): Promise<void> => {
    if (inProgress === 0) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        const what = inProgress === 1 ? 'a request is' : `${inProgress} requests are`;
        const message = `${what} still in progress after ${drainMs} ms; nothing was changed`;
        reject(new ApiError('unavailable', message, { headers: { 'retry-after': '1' } }));
      }, drainMs);
      drained = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  };
  const hold = async <T>(work: () => Promise<T>): Promise<T> => {
    held = Promise.withResolvers<void>();
    try {
      await drain();
      return await work();
    } finally {
      const { resolve } = held;
      [held, drained] = [undefined, undefined];
      resolve();
    }
  };
  return {
    async enter() {
      const wasHeld = held !== undefined;
      while (held !== undefined) await held.promise;
      inProgress += 1;
      return wasHeld;
    },
    leave() {
      inProgress -= 1;
      if (inProgress === 0) drained?.();
    },
    whileHeld(work) {
      const next = last.then(() => hold(work));
      last = next.catch(() => undefined);
      return next;
    },
  };
}
