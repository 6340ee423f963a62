import Sqlite from 'better-sqlite3';

/** A lock that this process holds. */
export interface FileLock {
  release(): void;
}

/**
 * Locks a file for this process, and writes the id of the process into it.
 *
 * NOTE: SQLite takes a lock of the operating system, which ends with the process, however the process ends. So no stale
 * lock remains. Other processes can still read the id.
 *
 * @returns the lock, or the id of another process that holds it.
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
