import type { ChainStore } from './store.ts';

class RollBackError extends Error {}

/** Runs `work`, rolls back its changes and returns its result. */
export function rollBack<T>(store: ChainStore, work: () => T): T {
  let result: { value: T } | undefined;
  try {
    store.atomically(() => {
      result = { value: work() };
      throw new RollBackError();
    });
  } catch (error) {
    if (!(error instanceof RollBackError)) throw error;
  }
  return result!.value;
}
