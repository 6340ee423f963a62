interface SamplerOptions<T> {
  /** Rejects when it cannot be read. */
  readonly read: () => Promise<T>;
  /** Scrapes within this time share one reading, ms. */
  readonly everyMs: number;
  /** How long a scrape waits for a reading, ms. */
  readonly waitMs: number;
  readonly onFailure: (error: unknown) => void;
}

/**
 * Reads something for metrics, such as the database, with limits: scrapes neither multiply the readings nor wait for
 * what does not answer. Undefined if it could not be read in time, so that alerts see that it is absent.
 */
export function sampled<T>({ read, everyMs, waitMs, onFailure }: SamplerOptions<T>) {
  let readAtMs = Number.NEGATIVE_INFINITY;
  let last: T | undefined;
  let current: Promise<void> | undefined;
  const refresh = async (): Promise<void> => {
    try {
      last = await read();
    } catch (error) {
      last = undefined;
      onFailure(error);
    } finally {
      readAtMs = performance.now();
      current = undefined;
    }
  };
  return async (): Promise<T | undefined> => {
    if (performance.now() - readAtMs < everyMs) return last;
    current ??= refresh();
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const timer = setTimeout(() => resolve(true), waitMs);
    const isLate = await Promise.race([current.then(() => false), promise]);
    clearTimeout(timer);
    return isLate ? undefined : last;
  };
}
