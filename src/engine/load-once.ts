/** Returns a function that calls `make` on its first call and returns the same result on every later call. */
export function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

export interface LoadOnce<T> {
  (): Promise<T>;
  /** Returns the promise of a load that has already started, or undefined. Does not start one. */
  begun(): Promise<T> | undefined;
}

/**
 * Returns a function that calls a loader on first use and caches its promise. Without the cache, even an `import()` of
 * a module that is already loaded takes as long as computing a hash. A failed load is retried on the next call.
 */
export function loadOnce<T>(load: () => Promise<T>): LoadOnce<T> {
  let loaded: Promise<T> | undefined;
  const call = (): Promise<T> => {
    loaded ??= load().catch((error: unknown) => {
      loaded = undefined;
      throw error;
    });
    return loaded;
  };
  return Object.assign(call, { begun: () => loaded });
}

/**
 * Returns a function that builds, for the named methods, an object whose methods create the real object on first use.
 */
export function lazyMethods<T extends object>(make: () => Promise<T>) {
  return <Name extends keyof T & string>(...names: readonly Name[]): Pick<T, Name> => {
    const methods = names.map((name) => [
      name,
      async (...input: unknown[]) => {
        const target = (await make()) as Record<string, (...input: unknown[]) => unknown>;
        return target[name]!(...input);
      },
    ]);
    return Object.fromEntries(methods) as Pick<T, Name>;
  };
}
