import type { SharedReads } from './shared-reads.ts';

/** The part of the handle that a group commit needs. */
interface GroupedHandle {
  /** The path of the database; undefined for one in memory. */
  readonly file: string | undefined;
  run(command: string): void;
  isInTransaction(): boolean;
  /** Resolves when every earlier commit is on disk. */
  flushed(): Promise<void>;
  /** Resolves when the disk can take the next commits; undefined if it can now. Never rejects. */
  diskFree(): Promise<void> | undefined;
  /** The shared read transactions. Undefined for a database in memory, whose reads need no locks. */
  readonly reads: SharedReads | undefined;
}

/**
 * The transactions of one handle that SQLite commits together. They run one after the other, because each caller holds
 * the mutex.
 */
export interface GroupCommit {
  begin(): void;
  /**
   * Makes the open transaction a savepoint, so that it can be rolled back without affecting the others. Call it before
   * each statement of the transaction, except plain reads and a statement with `commits`.
   */
  protect(): void;
  /**
   * Resolves when everything that the transaction has read is committed, and everything that it has written is on disk.
   * Undefined if there is nothing to wait for.
   */
  commit(hasWritten: boolean): Promise<void> | undefined;
  /** Rolls back the open transaction only. Resolves when everything that it has read is committed, or has failed. */
  rollback(): Promise<void> | undefined;
  /** Throws if an error has ended the open transaction, because SQLite would commit the next statement on its own. */
  requireOpen(): void;
  /**
   * Rejects all waiting transactions. Call it after an error, such as a full disk, that made SQLite roll back
   * everything.
   */
  lose(error: unknown): void;
  /**
   * Prepares a read outside transactions. Call it before such a read, which then sees everything that this handle has
   * committed.
   */
  read(): void;
  /**
   * Prepares any other statement outside transactions, which SQLite commits on its own. Call it before the statement.
   *
   * @throws if an earlier transaction cannot be ended: the statement would join it and be lost with it.
   */
  single(): void;
  /** Commits the waiting transactions. Call it before anything else uses the handle. */
  flush(): void;
}

/** The transactions that wait for SQLite's commit. */
interface Waiting {
  count: number;
  readonly committed: Promise<Committed>;
  /** Resolves when the group's changes are on disk. Undefined while no transaction of the group has written. */
  onDisk: Promise<void> | undefined;
  resolve(committed: Committed): void;
  reject(error: unknown): void;
}

interface Committed {
  readonly onDisk: Promise<void>;
}

/**
 * CHOICE: after this many transactions, a group is committed before its turn of the event loop ends, so that a long
 * turn does not delay its earliest transactions.
 */
const MAX_PER_GROUP = 64;

/**
 * CHOICE: how long a group waits for a busy disk before it is committed anyway, ms. Other processes cannot write during
 * this time.
 */
const MAX_HELD_MS = 5;

const NAME = 'one_of_group';

/**
 * The waiting groups by file. A waiting group is only committed at the end of the turn. If another handle of this
 * process locked the same file, it would block the event loop until its busy timeout ends.
 */
const waitingOn = new Map<string, Set<GroupCommit>>();

/** Commits the groups of this process that wait on a file. Call it before another handle locks the file. */
export function flushFile(file: string): void {
  for (const group of waitingOn.get(file) ?? []) group.flush();
}

/**
 * Creates a group commit. SQLite takes longer to commit than to run a short transaction, whether it commits one or
 * many. The transactions of one turn of the event loop are therefore committed together: at the end of the turn, or
 * once the disk has finished the previous commits. The first transaction is SQLite's own; each later one is a savepoint
 * in it. A transaction whose only change is a statement with `commits` needs no savepoint, because SQLite undoes a
 * failed statement.
 *
 * INVARIANT: nothing is acknowledged, or read outside a transaction, before it is committed. If the commit fails, all
 * transactions of the group fail and nothing of them remains.
 */
export function createGroupCommit(handle: GroupedHandle): GroupCommit {
  const { file, run, isInTransaction, flushed, diskFree, reads } = handle;
  let waiting: Waiting | undefined;
  let isOpen = false;
  let isLost = false;
  // Whether the open transaction is a savepoint.
  let isProtected = false;
  // Whether the turn has ended while a transaction was open. The group is then committed when this transaction ends.
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
    if (isDue || gathered.count === MAX_PER_GROUP) flush();
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
    // Closing a handle drops its open transaction.
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

  /** Rolls back everything after an error. If this fails too, the next `begin` reports it. */
  function rollBackAll(): void {
    try {
      if (isInTransaction()) run('rollback');
    } catch {}
  }

  /**
   * Runs commands that end the open transaction. If they fail, this transaction and the waiting ones before it are
   * rolled back.
   */
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
