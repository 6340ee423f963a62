import Sqlite from 'better-sqlite3';

/** A lock that this process holds. */
export interface FileLock {
  release(): void;
}

/**
 * Locks a file for this process, which is noted in it.
 *
 * NOTE: a lock of the operating system, taken by SQLite. It ends with the process however that ends, so that no stale
 * lock is left over. Others can still read who holds it.
 *
 * @returns the id of the process that holds the lock, if another one does.
 */
export function lockFile(file: string): FileLock | { readonly heldBy: number } {
  const handle = new Sqlite(file, { timeout: 0 });
  try {
    handle.exec('begin immediate');
    handle.pragma(`user_version = ${process.pid}`);
    handle.exec('commit');
    handle.exec('begin immediate');
    return { release: () => void handle.close() };
  } catch (error) {
    try {
      if (!isHeld(error)) throw error;
      return { heldBy: handle.pragma('user_version', { simple: true }) as number };
    } finally {
      handle.close();
    }
  }
}

function isHeld(error: unknown): boolean {
  return String((error as { code?: unknown }).code).startsWith('SQLITE_BUSY');
}
