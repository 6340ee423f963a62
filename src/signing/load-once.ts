/**
 * Calls a loader on first use and caches its promise: even an `import()` of a loaded module takes as long as a hash.
 * A failed load is retried on the next call.
 */
export function loadOnce<T>(load: () => Promise<T>): () => Promise<T> {
  let loaded: Promise<T> | undefined;
  return () => {
    loaded ??= load().catch((error: unknown) => {
      loaded = undefined;
      throw error;
    });
    return loaded;
  };
}
