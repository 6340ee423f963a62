import { close, fdatasync, open } from 'node:fs';
import { promisify } from 'node:util';
import { loadOnce } from '../../engine/load-once.ts';

/** Makes commits to a SQLite file survive a power loss. */
export interface CommitSync {
  /**
   * Resolves when every earlier commit is on disk.
   *
   * @throws the error of the file system, and then again at every later call; an error with the code ETIMEDOUT after
   * ten seconds.
   */
  flushed(): Promise<void>;
  /** Resolves when the running sync has ended or its callers have given up; undefined if none runs. Never rejects. */
  free(): Promise<void> | undefined;
  /** Resolves once every earlier `flushed()` has settled; undefined if none waits. Never rejects. */
  settled(): Promise<void> | undefined;
  /** Syncs the remaining commits. Call it when the database is closed. */
  close(): Promise<void>;
}

/** The system calls, which tests replace. */
export interface SyncCalls {
  open(file: string): Promise<number>;
  sync(descriptor: number): Promise<void>;
  close(descriptor: number): Promise<void>;
}

const systemCalls: SyncCalls = {
  // Some systems sync only files that are open for writing.
  open: (file) => promisify(open)(file, 'r+'),
  // HOT: `promisify` would double the cost of a sync.
  sync: (descriptor) =>
    new Promise((resolve, reject) => {
      fdatasync(descriptor, (error) => (error === null ? resolve() : reject(error)));
    }),
  close: (descriptor) => promisify(close)(descriptor),
};

/**
 * CHOICE: how long a commit waits for the disk. After that, its caller gets an error, although the commit may be on
 * disk.
 */
const LIMIT_MS = 10_000;

/** A sync that runs, or that runs next. */
interface Sync {
  readonly ended: Promise<void>;
  /** Settles with `ended`, but rejects when the sync takes too long. */
  readonly answer: Promise<void>;
}

/**
 * Creates the sync for a database with `synchronous = NORMAL`. It syncs the write-ahead log in a thread of the system.
 * One sync covers all commits before it. SQLite itself would sync each commit and block the event loop.
 *
 * A failed sync may have dropped data, and later syncs would not notice. After a failure, nothing is acknowledged until
 * the database is opened again.
 *
 * @param log the path of the log, which exists after the first commit.
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
      // The running sync may have started before the commit, so wait for the next one.
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
  // Possibly nobody waits for a sync that `follow` starts. Later calls throw its error.
  answer.catch(() => undefined);
  return answer;
}
