import { ApiError } from '../errors.ts';

interface Held {
  /** Whether the caller had to wait for other callers. */
  readonly hasWaited: boolean;
  release(): void;
}

/**
 * CHOICE: the maximum number of requests that wait for one name, for example for one wallet. More waiting requests
 * would not be served any sooner.
 */
const MAX_WAITING = 256;
const WAIT_MS = 5_000;

export interface KeyedMutex {
  /**
   * Waits until all earlier callers with the same name have released the mutex.
   *
   * @throws ApiError unavailable after too long a wait, or when too many callers wait.
   */
  acquire(name: string): Promise<Held>;
}

/**
 * Creates a mutex per name. Callers with the same name get it one at a time, in the order of arrival.
 *
 * @param waitMs the maximum wait of a caller.
 */
export function createKeyedMutex(waitMs = WAIT_MS): KeyedMutex {
  /** The waiting callers of each name that is locked. */
  const waiting = new Map<string, Set<() => void>>();

  function heldBy(name: string, hasWaited: boolean): Held {
    return {
      hasWaited,
      release() {
        const [next] = waiting.get(name)!;
        if (next === undefined) waiting.delete(name);
        else next();
      },
    };
  }

  async function acquire(name: string): Promise<Held> {
    const others = waiting.get(name);
    if (others === undefined) {
      waiting.set(name, new Set());
      return heldBy(name, false);
    }
    if (others.size >= MAX_WAITING) throw tooMany();
    return new Promise((resolve, reject) => {
      const proceed = (): void => {
        others.delete(proceed);
        clearTimeout(timer);
        resolve(heldBy(name, true));
      };
      const timer = setTimeout(() => {
        others.delete(proceed);
        reject(tooMany());
      }, waitMs);
      others.add(proceed);
    });
  }

  return { acquire };
}

function tooMany(): ApiError {
  return new ApiError('unavailable', 'the wallet is used by too many requests at once', {
    headers: { 'retry-after': '1' },
  });
}
