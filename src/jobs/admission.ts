/** Lets as many in at a time as the limit says; the others wait, first come, first served. */
export interface Admission {
  /** Runs `work` as soon as there is room for it. */
  enter<T>(work: () => Promise<T>): Promise<T>;
  /** Changes the limit; those who are in stay. */
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
