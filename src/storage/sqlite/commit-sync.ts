import { close, fdatasync, open } from 'node:fs';
import { promisify } from 'node:util';
import { loadOnce } from '../../engine/load-once.ts';

/** Makes what was committed to a SQLite file survive a power loss. */
export interface CommitSync {
  /**
   * Resolves when everything that was committed before the call is on the disk.
   *
   * @throws the error of the file system; if it is that of a sync, for all later calls too. After ten seconds an error
   * with the code ETIMEDOUT.
   */
  flushed(): Promise<void>;
  /** Resolves when the sync that runs has ended; undefined if none does. Never rejects. */
  free(): Promise<void> | undefined;
  /** Resolves once every earlier `flushed()` has settled; undefined if none waits. Never rejects. */
  settled(): Promise<void> | undefined;
  /** Call it when the database is closed, which syncs what is left. */
  close(): Promise<void>;
}

/** The system calls, which tests replace. */
export interface SyncCalls {
  open(file: string): Promise<number>;
  sync(descriptor: number): Promise<void>;
  close(descriptor: number): Promise<void>;
}

const systemCalls: SyncCalls = {
  // Some systems sync only what is open for writing.
  open: (file) => promisify(open)(file, 'r+'),
  // HOT: `promisify` takes as long as the rest.
  sync: (descriptor) =>
    new Promise((resolve, reject) => {
      fdatasync(descriptor, (error) => (error === null ? resolve() : reject(error)));
    }),
  close: (descriptor) => promisify(close)(descriptor),
};

/** CHOICE: how long a commit waits for the disk. Later, its caller does not learn whether it survives. */
const LIMIT_MS = 10_000;

/** A sync that runs, or that follows the one that runs. */
interface Sync {
  readonly ended: Promise<void>;
  /** The same, or an error when it takes too long. */
  readonly answer: Promise<void>;
}

/**
 * Syncs the write-ahead log of a database whose commits do not (`synchronous = NORMAL`), in a thread of the system, for
 * all that have committed meanwhile at once. SQLite itself would sync each commit by itself and block the event loop.
 *
 * A failed sync may have dropped what it could not write, and later ones would not notice, so nothing is acknowledged
 * after one until the database is opened again.
 *
 * @param log the path of the log, which exists once something was committed.
 */
export function createCommitSync(
  log: string,
  calls: SyncCalls = systemCalls,
  limitMs: number = LIMIT_MS,
): CommitSync {
  const openLog = loadOnce(() => calls.open(log));
  let running: Sync | undefined;
  let next: Sync | undefined;
  let failure: { readonly error: unknown } | undefined;

  async function sync(): Promise<void> {
    if (failure !== undefined) throw failure.error;
    const opened = await openLog();
    try {
      await calls.sync(opened);
    } catch (error) {
      failure = { error };
      throw error;
    }
  }

  function begin(): Sync {
    const ended = sync().finally(() => {
      if (running === begun) running = undefined;
    });
    const begun = { ended, answer: inTime(ended, limitMs) };
    running = begun;
    return begun;
  }

  function follow({ ended: before }: Sync): Sync {
    const ended = before
      .catch(() => undefined)
      .then(() => {
        next = undefined;
        return begin().ended;
      });
    return { ended, answer: inTime(ended, limitMs) };
  }

  return {
    flushed() {
      if (running === undefined) return begin().answer;
      // The one that runs may have begun before the commit.
      next ??= follow(running);
      return next.answer;
    },
    free() {
      return running?.answer.catch(() => undefined);
    },
    settled() {
      return (next ?? running)?.answer.catch(() => undefined);
    },
    async close() {
      await Promise.allSettled([running?.answer, next?.answer]);
      const opened = await openLog.begun();
      if (opened !== undefined) await calls.close(opened);
    },
  };
}

function inTime(ended: Promise<void>, limitMs: number): Promise<void> {
  const answer = new Promise<void>((resolve, reject) => {
    const late = (): void =>
      reject(Object.assign(new Error('the disk takes too long to sync'), { code: 'ETIMEDOUT' }));
    const timer = setTimeout(late, limitMs);
    ended.then(resolve, reject).finally(() => clearTimeout(timer));
  });
  // The sync that `follow` begins has no caller of its own.
  answer.catch(() => undefined);
  return answer;
}
