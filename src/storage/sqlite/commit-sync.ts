import { close, fdatasync, open } from 'node:fs';
import { promisify } from 'node:util';
import { loadOnce } from '../../load-once.ts';

/** Makes what was committed to a SQLite file survive a power loss. */
export interface CommitSync {
  /**
   * Resolves when everything that was committed before the call is on the disk.
   *
   * @throws the error of the file system; if it is that of a sync, for all later calls too.
   */
  reach(): Promise<void>;
  /** Resolves when no `reach` of before the call waits any more; undefined if none does. Never rejects. */
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
  sync: (descriptor) => promisify(fdatasync)(descriptor),
  close: (descriptor) => promisify(close)(descriptor),
};

/**
 * Syncs the write-ahead log of a database whose commits do not (`synchronous = NORMAL`), in a thread of the system, for
 * all that have committed meanwhile at once. SQLite itself would sync each commit by itself and block the event loop.
 *
 * A failed sync may have dropped what it could not write, and later ones would not notice, so nothing is acknowledged
 * after one until the database is opened again.
 *
 * @param log the path of the log, which exists once something was committed.
 */
export function createCommitSync(log: string, calls: SyncCalls = systemCalls): CommitSync {
  const openLog = loadOnce(() => calls.open(log));
  let running: Promise<void> | undefined;
  let next: Promise<void> | undefined;
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

  function start(): Promise<void> {
    const started = sync().finally(() => {
      if (running === started) running = undefined;
    });
    running = started;
    return started;
  }

  return {
    reach() {
      if (running === undefined) return start();
      // The one that runs may have begun before the commit.
      next ??= running
        .catch(() => undefined)
        .then(() => {
          next = undefined;
          return start();
        });
      return next;
    },
    settled() {
      return (next ?? running)?.catch(() => undefined);
    },
    async close() {
      await Promise.allSettled([running, next]);
      const opened = await openLog.begun();
      if (opened !== undefined) await calls.close(opened);
    },
  };
}
