/** The handle, as far as reads need it. */
interface ReadHandle {
  /** Runs one of the commands of a transaction. */
  run(command: string): void;
  isInTransaction(): boolean;
}

/** Reads outside of transactions, of which all from the second one of a turn on see the same state of the database. */
export interface SharedReads {
  /** Call it before such a read. */
  join(): void;
  /** Call it before anything else uses the handle. */
  end(): void;
}

/**
 * Outside of a transaction, each statement locks the file, finds the newest state of the database and unlocks the file
 * again. These system calls take twice as long as reading a row by its key. So from the second read in a turn of the event
 * loop on, reads share a transaction, which ends with the turn.
 *
 * INVARIANT: a read sees everything that was committed before its turn, and everything that this handle has committed.
 *
 * CHOICE: a turn lasts until the event loop runs its immediates, so it can begin in a timer and include requests that arrive
 * later. Such a read may miss what another process has committed in between, which for a sandbox's folder is only a command
 * that is run beside the server, and lasts for milliseconds.
 */
export function shareReads({ run, isInTransaction }: ReadHandle): SharedReads {
  // Reads of this turn since anything else used the handle.
  let count = 0;
  let isOpen = false;
  let isTurnWatched = false;

  function end(): void {
    count = 0;
    if (!isOpen) return;
    try {
      // An error of a statement may have ended it.
      if (isInTransaction()) run('rollback');
      isOpen = false;
    } catch {
      // The next use of the handle tries again, and fails if this does.
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
