/** Limits how much work runs at a time. The rest waits in order of arrival. */
export interface Admission {
  /** Runs `work` as soon as the limit allows it. */
  enter<T>(work: () => Promise<T>): Promise<T>;
  /** Changes the limit. Running work is not interrupted. */
  limitTo(count: number): void;
}

export function createAdmission(count: number): Admission {
  let limit = count;
  let inside = 0;
  const waiting: (() => void)[] = [];

  function admit(): void {
    while (waiting.length > 0 && inside < limit) {
      inside += 1;
      waiting.shift()!();
    }
  }

  return {
    async enter(work) {
      await new Promise<void>((resolve) => {
        waiting.push(resolve);
        admit();
      });
      try {
        return await work();
      } finally {
        inside -= 1;
        admit();
      }
    },
    limitTo(next) {
      limit = next;
      admit();
    },
  };
}
