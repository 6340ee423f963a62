import type { SharedReads } from './shared-reads.ts';

/** The handle, as far as a group needs it. */
interface GroupedHandle {
  /** The path of the database; undefined for one in memory. */
  readonly file: string | undefined;
  /** Runs one of the commands of a transaction. */
  run(command: string): void;
  isInTransaction(): boolean;
  /** Resolves when everything that was committed is on the disk. */
  flushed(): Promise<void>;
  /** Resolves when the disk can begin with what is committed; undefined if it can now. Never rejects. */
  diskFree(): Promise<void> | undefined;
  /** Undefined for a database in memory, whose reads need no locks. */
  readonly reads: SharedReads | undefined;
}

/** Transactions of one handle that SQLite commits together. They run one after the other: each caller holds the mutex. */
export interface GroupCommit {
  begin(): void;
  /**
   * Call it before each statement of the open transaction, except those that only read and one with which it is committed:
   * from here on, what the transaction does can be rolled back without the others.
   */
  protect(): void;
  /** Resolves when what the transaction has read is committed and what it has written is on the disk. */
  commit(hasWritten: boolean): Promise<void> | undefined;
  /** Rolls back the open transaction only. Resolves when what it has read is committed, or has failed. */
  rollback(): Promise<void> | undefined;
  /** Throws if an error has ended the open transaction: SQLite would commit its next statement by itself. */
  requireOpen(): void;
  /** SQLite has rolled back everything because of an error, such as a full disk. */
  lose(error: unknown): void;
  /** Call it before a statement outside of transactions that only reads: it finds what this handle has committed. */
  read(): void;
  /**
   * Call it before any other statement outside of transactions, which SQLite commits by itself.
   *
   * @throws if an earlier transaction cannot be ended: the statement would become part of it, and be lost with it.
   */
  single(): void;
  /** Commits those that wait for it. Call it before anything else uses the handle. */
  flush(): void;
}

/** Transactions that wait for SQLite's commit. */
interface Waiting {
  count: number;
  readonly committed: Promise<Committed>;
  /** Undefined until a transaction that has written something waits for it. */
  onDisk: Promise<void> | undefined;
  resolve(committed: Committed): void;
  reject(error: unknown): void;
}

interface Committed {
  readonly onDisk: Promise<void>;
}

/** CHOICE: after so many, a long turn of the event loop does not hold back the first ones any more. */
const MAX_TOGETHER = 64;

/** CHOICE: how long a transaction is held for a disk that is busy, ms. Other processes cannot write meanwhile. */
const MAX_HELD_MS = 5;

const NAME = 'one_of_group';

/**
 * The groups that wait, by file. Another handle of this process would block the event loop until its patience ends, and
 * with it the end of the turn, at which the group is committed.
 */
const waitingOn = new Map<string, Set<GroupCommit>>();

/** Commits what waits in this process on a file. Call it before another handle locks the file. */
export function flushFile(file: string): void {
  for (const group of waitingOn.get(file) ?? []) group.flush();
}

/**
 * A commit takes SQLite longer than the statements of a short transaction, for one as for many. So those of one turn of the
 * event loop are committed together at its end, or when the disk has finished with those before. From the second one on,
 * each is a savepoint in SQLite's own transaction, unless its only change is the statement with which it is committed:
 * SQLite undoes a statement that fails by itself.
 *
 * INVARIANT: nothing is acknowledged before it is committed, and nothing of it is read outside of a transaction before. If
 * the commit fails, all that wait for it fail, and nothing of them remains.
 */
export function createGroupCommit(handle: GroupedHandle): GroupCommit {
  const { file, run, isInTransaction, flushed, diskFree, reads } = handle;
  let waiting: Waiting | undefined;
  let isOpen = false;
  let isLost = false;
  // The open transaction is a savepoint.
  let isProtected = false;
  // The turn has ended while a transaction was open, so all are committed when it ends.
  let isDue = false;

  function gather(): Waiting {
    const { promise: committed, resolve, reject } = Promise.withResolvers<Committed>();
    noteWaiting();
    const gathered: Waiting = { count: 0, committed, onDisk: undefined, resolve, reject };
    const commit = (): void => {
      if (waiting !== gathered) return;
      if (isOpen) isDue = true;
      else flush();
    };
    setImmediate(() => {
      const free = waiting === gathered ? diskFree() : undefined;
      if (free === undefined) return commit();
      void free.then(commit);
      setTimeout(commit, MAX_HELD_MS);
    });
    return gathered;
  }

  function wait(hasWritten: boolean): Promise<void> {
    waiting ??= gather();
    const gathered = waiting;
    gathered.count += 1;
    if (isDue || gathered.count === MAX_TOGETHER) flush();
    if (!hasWritten) return gathered.committed.then(() => undefined);
    gathered.onDisk ??= gathered.committed.then(({ onDisk }) => onDisk);
    return gathered.onDisk;
  }

  function noteWaiting(): void {
    if (file === undefined) return;
    const groups = waitingOn.get(file) ?? new Set();
    waitingOn.set(file, groups.add(group));
  }

  function forgetWaiting(): void {
    if (file === undefined) return;
    const groups = waitingOn.get(file);
    groups?.delete(group);
    if (groups?.size === 0) waitingOn.delete(file);
  }

  function takeWaiting(): Waiting | undefined {
    forgetWaiting();
    const taken = waiting;
    waiting = undefined;
    isDue = false;
    return taken;
  }

  function flush(): void {
    reads?.end();
    // A handle that is closed in the middle of a transaction keeps nothing of it.
    if (waiting === undefined || isOpen) return;
    const taken = takeWaiting()!;
    try {
      run('commit');
    } catch (error) {
      rollBackAll();
      taken.reject(error);
      return;
    }
    taken.resolve({ onDisk: flushed() });
  }

  /** After an error. If it fails too, the next `begin` says so. */
  function rollBackAll(): void {
    try {
      if (isInTransaction()) run('rollback');
    } catch {}
  }

  /** Runs commands that end the open transaction. Nothing is kept of one that cannot be ended, nor of those before it. */
  function end(...commands: readonly string[]): void {
    isOpen = false;
    try {
      for (const command of commands) run(command);
    } catch (error) {
      rollBackAll();
      takeWaiting()?.reject(error);
      throw error;
    }
  }

  function requireOpen(): void {
    if (isLost) throw new Error('an error has ended the transaction');
  }

  const group: GroupCommit = {
    begin() {
      if (waiting === undefined) {
        reads?.end();
        if (file !== undefined) flushFile(file);
        run('begin immediate');
      }
      isOpen = true;
      isLost = false;
      isProtected = false;
    },
    protect() {
      if (waiting === undefined || isProtected) return;
      try {
        run(`savepoint ${NAME}`);
      } catch (error) {
        if (!isInTransaction()) group.lose(error);
        throw error;
      }
      isProtected = true;
    },
    commit(hasWritten) {
      isOpen = false;
      requireOpen();
      if (waiting !== undefined) end(...(isProtected ? [`release ${NAME}`] : []));
      else if (!hasWritten) return void end('commit');
      return wait(hasWritten);
    },
    rollback() {
      isOpen = false;
      if (isLost) return undefined;
      if (waiting === undefined) return void end('rollback');
      const { committed } = waiting;
      end(...(isProtected ? [`rollback to ${NAME}`, `release ${NAME}`] : []));
      if (isDue) flush();
      return committed.then(
        () => undefined,
        () => undefined,
      );
    },
    requireOpen,
    lose(error) {
      isLost = isOpen;
      takeWaiting()?.reject(error);
    },
    read() {
      if (waiting !== undefined) flush();
      reads?.join();
    },
    single() {
      flush();
      if (file !== undefined) flushFile(file);
      if (isInTransaction()) throw new Error('an earlier transaction cannot be ended');
    },
    flush,
  };
  return group;
}
