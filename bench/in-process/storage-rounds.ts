import { idOf, type StorageSubject, storageOperations } from './storage-subject.ts';

/** Whom and what a round measures. */
export interface StorageRounds {
  readonly subjects: Readonly<
    Record<string, { subject: StorageSubject /** Seeded wallets. */; rows: number }>
  >;
  readonly rounds: number;
  /** How often each operation is done in a round. */
  readonly counts: Readonly<Record<(typeof storageOperations)[number], number>>;
  /** How many are at work at a time. */
  readonly concurrency: number;
  readonly tell: (progress: string) => void;
}

export interface StorageMeasured {
  readonly subject: string;
  readonly operation: string;
  /** CPU µs of this process for each operation, by round. */
  readonly cpuMicroseconds: number[];
  readonly perSecond: number[];
}

/** Every subject does every operation once a round; a first round warms up and does not count. */
export async function measureStorage(options: StorageRounds): Promise<StorageMeasured[]> {
  const measured = new Map<string, StorageMeasured>();
  // Wallets that are made here come after all that were seeded, and never twice.
  let next = 2_000_000;
  for (let round = 0; round <= options.rounds; round += 1) {
    for (const [name, { subject, rows }] of Object.entries(options.subjects)) {
      options.tell(round === 0 ? `warming up ${name}` : `round ${round} of ${options.rounds}: ${name}`);
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

/** Jumps about among the seeded wallets; never among the last, which have no full page behind them. */
function numberOf(at: number, rows: number): number {
  return 100 + ((at * 7919) % (rows - 100));
}

/** Does it `count` times, so many at a time. */
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

/** Progress to the parent process. */
export function tellParent(progress: string): void {
  process.send?.(progress);
}
