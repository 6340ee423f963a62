import { ApiError } from '../errors.ts';

interface Turn {
  /** Whether others were first. */
  readonly hasWaited: boolean;
  end(): void;
}

/** CHOICE: more requests for one wallet at once are not served faster by waiting. */
const MAX_WAITING = 256;
const WAIT_MS = 5_000;

export interface Turns {
  /** Waits for those who have named the same thing before. */
  take(name: string): Promise<Turn>;
}

/**
 * Lets those who name the same thing proceed one at a time, in the order of arrival.
 *
 * @param waitMs how long a caller waits at most; after that it is refused.
 */
export function createTurns(waitMs = WAIT_MS): Turns {
  /** Those who wait behind the one whose turn it is. */
  const waiting = new Map<string, Set<() => void>>();

  function turnOf(name: string, hasWaited: boolean): Turn {
    return {
      hasWaited,
      end() {
        const [next] = waiting.get(name)!;
        if (next === undefined) waiting.delete(name);
        else next();
      },
    };
  }

  async function take(name: string): Promise<Turn> {
    const others = waiting.get(name);
    if (others === undefined) {
      waiting.set(name, new Set());
      return turnOf(name, false);
    }
    if (others.size >= MAX_WAITING) throw tooMany();
    return new Promise((resolve, reject) => {
      const proceed = (): void => {
        others.delete(proceed);
        clearTimeout(timer);
        resolve(turnOf(name, true));
      };
      const timer = setTimeout(() => {
        others.delete(proceed);
        reject(tooMany());
      }, waitMs);
      others.add(proceed);
    });
  }

  return { take };
}

function tooMany(): ApiError {
  return new ApiError('unavailable', 'the wallet is used by too many requests at once', {
    headers: { 'retry-after': '1' },
  });
}
