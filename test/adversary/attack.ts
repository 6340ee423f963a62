import { setTimeout as pause } from 'node:timers/promises';
import type { Random } from '../simulation/random.ts';

/** All in a random order, then at random for ever: a short run has each once. */
export function* deckOf<T>(cases: readonly T[], random: Random): Generator<T & object, never> {
  const left = [...cases];
  for (;;) {
    const at = random.below(left.length > 0 ? left.length : cases.length);
    yield (left.length > 0 ? left.splice(at, 1)[0] : cases[at]) as T & object;
  }
}

/** Runs steps in several lanes until the signal. */
export async function inLanes(
  lanes: number,
  { signal, pauseMs }: { readonly signal: AbortSignal; readonly pauseMs: number },
  step: () => Promise<void>,
): Promise<void> {
  await Promise.all(
    Array.from({ length: lanes }, async () => {
      while (!signal.aborted) {
        await step();
        await pause(pauseMs);
      }
    }),
  );
}
