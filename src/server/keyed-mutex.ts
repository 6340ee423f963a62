import { ApiError } from '../errors.ts';

interface Held {
  /** Whether other callers held it first. */
  readonly hasWaited: boolean;
  release(): void;
}

/**
 * CHOICE: the maximum number of waiting requests for one wallet. Letting more requests wait would not serve them any
 * sooner.
 */
const MAX_WAITING = 256;
const WAIT_MS = 5_000;

export interface KeyedMutex {
  /** Waits for earlier callers with the same name. */
  acquire(name: string): Promise<Held>;
}

/**
 * Admits callers with the same name one at a time, in the order of arrival.
 *
 * @param waitMs the maximum wait, after which the caller is refused.
 */
export function createKeyedMutex(waitMs = WAIT_MS): KeyedMutex {
  /** The waiting callers, by the held name. */
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
