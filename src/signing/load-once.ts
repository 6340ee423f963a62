/**
 * Calls a loader at first use and keeps what it promised: an `import()` of a module that is already there still
 * costs as much as a hash. A load that fails is tried again.
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
