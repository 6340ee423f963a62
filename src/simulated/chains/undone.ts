import type { ChainStore } from './store.ts';

class UndoError extends Error {}

/** Runs work for its answer and undoes everything that it did: a dry run. */
export function undone<T>(store: ChainStore, work: () => T): T {
  let result: { value: T } | undefined;
  try {
    store.atomically(() => {
      result = { value: work() };
      throw new UndoError('undone');
    });
  } catch (error) {
    if (!(error instanceof UndoError)) throw error;
  }
  return result!.value;
}
