import { idOf, type StorageSubject, storageOperations } from './storage-subject.ts';

export interface StorageMeasured {
  readonly subject: string;
  readonly operation: string;
  /** CPU µs of this process per operation, by round. */
  readonly cpuMicroseconds: number[];
  readonly perSecond: number[];
}

/** An operation on a subject, and how often a round runs it. */
export interface MeasuredOperation {
  readonly count: number;
  run(at: number): Promise<void> | void;
}

/** Measures every operation of every subject once a round. The first round is a warm-up and is not counted. */
export async function measureOperations(
  rounds: number,
  concurrency: number,
  operations: readonly (readonly [operation: string, subject: string, MeasuredOperation])[],
): Promise<StorageMeasured[]> {
  const measured = operations.map(([operation, subject]): StorageMeasured => {
    return { operation, subject, cpuMicroseconds: [], perSecond: [] };
  });
  for (let round = 0; round <= rounds; round += 1) {
    for (const [index, [operation, subject, { count, run }]] of operations.entries()) {
      const turn = round === 0 ? 'warming up' : `round ${round} of ${rounds}:`;
      reportProgress(`${turn} ${subject}, ${operation}`);
      const found = await measureOnce(run, count, concurrency);
      if (round === 0) continue;
      measured[index]!.cpuMicroseconds.push(found.cpuMicroseconds);
      measured[index]!.perSecond.push(found.perSecond);
    }
  }
  return measured;
}

/** Numbers of new wallets: above all seeded ones, and never reused. */
let nextNumber = 2_000_000;

/** The operations of a subject with `rows` seeded wallets. */
export function operationsOf(
  name: string,
  subject: StorageSubject,
  rows: number,
  counts: Readonly<Record<(typeof storageOperations)[number], number>>,
) {
  return storageOperations.map((operation) => {
    const idAt = (at: number): string => idOf(operation === 'create' ? nextNumber++ : numberOf(at, rows));
    const run = (at: number) => subject[operation](idAt(at));
    return [operation, name, { count: counts[operation], run }] as const;
  });
}

/** Spreads over the seeded wallets, except the last ones, which are not followed by a full page. */
function numberOf(at: number, rows: number): number {
  return 100 + ((at * 7919) % (rows - 100));
}

/** Runs the work `count` times, `concurrency` at a time. */
export async function measureOnce(
  run: (at: number) => Promise<void> | void,
  count: number,
  concurrency: number,
) {
  const startedMs = performance.now();
  const before = process.cpuUsage();
  let at = 0;
  const keepGoing = async (): Promise<void> => {
    while (at < count) {
      at += 1;
      const done = run(at - 1);
      if (done !== undefined) await done;
    }
  };
  await Promise.all(Array.from({ length: concurrency }, keepGoing));
  const { user, system } = process.cpuUsage(before);
  return {
    cpuMicroseconds: (user + system) / count,
    perSecond: (count * 1000) / (performance.now() - startedMs),
  };
}

/** Reports progress to the parent process. */
export function reportProgress(progress: string): void {
  process.send?.(progress);
}
