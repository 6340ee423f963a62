import { idOf, type StorageSubject, storageOperations } from './storage-subject.ts';

/** The subjects and operations of a round. */
export interface StorageRounds {
  readonly subjects: Readonly<
    Record<string, { subject: StorageSubject /** Seeded wallets. */; rows: number }>
  >;
  readonly rounds: number;
  /** How often a round runs each operation. */
  readonly counts: Readonly<Record<(typeof storageOperations)[number], number>>;
  /** Concurrent operations. */
  readonly concurrency: number;
  readonly report: (progress: string) => void;
}

export interface StorageMeasured {
  readonly subject: string;
  readonly operation: string;
  /** CPU µs of this process per operation, by round. */
  readonly cpuMicroseconds: number[];
  readonly perSecond: number[];
}

/** Measures every operation of every subject once a round. The first round is a warm-up and is not counted. */
export async function measureStorage(options: StorageRounds): Promise<StorageMeasured[]> {
  const measured = new Map<string, StorageMeasured>();
  // Numbers of new wallets: above all seeded ones, and never reused.
  let next = 2_000_000;
  for (let round = 0; round <= options.rounds; round += 1) {
    for (const [name, { subject, rows }] of Object.entries(options.subjects)) {
      options.report(round === 0 ? `warming up ${name}` : `round ${round} of ${options.rounds}: ${name}`);
      for (const operation of storageOperations) {
        const first = next;
        const idAt = (at: number): string => idOf(operation === 'create' ? first + at : numberOf(at, rows));
        const count = options.counts[operation];
        if (operation === 'create') next += count;
        const found = await measureOnce((at) => subject[operation](idAt(at)), count, options.concurrency);
        if (round === 0) continue;
        const key = `${name} ${operation}`;
        const entry = measured.get(key) ?? { subject: name, operation, cpuMicroseconds: [], perSecond: [] };
        entry.cpuMicroseconds.push(found.cpuMicroseconds);
        entry.perSecond.push(found.perSecond);
        measured.set(key, entry);
      }
    }
  }
  return [...measured.values()];
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
