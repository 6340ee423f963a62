/** The part of the handle that reads need. */
interface ReadHandle {
  run(command: string): void;
  isInTransaction(): boolean;
}

/**
 * Groups reads outside transactions. From the second read of a turn of the event loop on, they share a transaction and
 * thus one state of the database.
 */
export interface SharedReads {
  /** Call it before a read outside transactions. */
  join(): void;
  /** Ends the shared transaction. Call it before anything else uses the handle. */
  end(): void;
}

/**
 * Creates the groups. Outside transactions, each statement locks the file, finds the newest state of the database, and
 * unlocks the file. These system calls take twice as long as reading a row by its key. From the second read of a turn
 * on, reads therefore share a transaction, which ends with the turn.
 *
 * INVARIANT: a read sees everything that was committed before its turn, and everything that this handle has committed.
 *
 * CHOICE: a turn lasts until the event loop runs its immediates, so it can begin in a timer and include requests that
 * arrive later. For these milliseconds, a read may miss commits of another process. For the folder of a sandbox, this
 * is only a command that runs next to the server.
 */
export function shareReads({ run, isInTransaction }: ReadHandle): SharedReads {
  // The number of reads in this turn since anything else used the handle.
  let count = 0;
  let isOpen = false;
  let isTurnWatched = false;

  function end(): void {
    count = 0;
    if (!isOpen) return;
    try {
      // A failed statement may have ended the transaction.
      if (isInTransaction()) run('rollback');
      isOpen = false;
    } catch {
      // The next use of the handle tries again, and throws if that fails.
    }
  }

  function beginTurn(): void {
    end();
    if (isOpen) throw new Error('the transaction of earlier reads cannot be ended');
    isTurnWatched = true;
    setImmediate(() => {
      isTurnWatched = false;
      end();
    });
  }

  return {
    join() {
      if (!isTurnWatched) beginTurn();
      count += 1;
      if (count !== 2) return;
      run('begin');
      isOpen = true;
    },
    end,
  };
}
