import type { Database as SqliteHandle } from 'better-sqlite3';

/** Thrown when a SQLite file cannot be upgraded to the schema of this version. */
export class StorageVersionError extends Error {
  constructor(file: string, reason: string, options?: ErrorOptions) {
    super(
      `the data in \`${file}\` was written by another version and cannot be upgraded (${reason}); ` +
        'run the version that wrote it, or start with an empty folder',
      options,
    );
    this.name = 'StorageVersionError';
  }
}

/**
 * Migrates a SQLite file to the newest schema. A new file gets every step, an older file the missing steps.
 * `user_version` stores the number of applied steps.
 *
 * @param steps SQL, oldest first. Released steps never change.
 * @param stepsOf interprets the `user_version` of files that were written before steps were counted.
 * @throws StorageVersionError for a file of a newer version, and when a step fails on the data. The file is then
 * unchanged.
 */
export function upgradeSqlite(
  handle: SqliteHandle,
  steps: readonly string[],
  stepsOf: (userVersion: number) => number = (userVersion) => userVersion,
): void {
  const userVersion = (): number => handle.pragma('user_version', { simple: true }) as number;
  if (userVersion() === steps.length) return;
  handle.exec('begin immediate');
  try {
    // Another process may have migrated the file in the meantime.
    const count = stepsOf(userVersion());
    if (count > steps.length) {
      const reason = `it is at version ${count} of the schema, expected at most ${steps.length}`;
      throw new StorageVersionError(handle.name, reason);
    }
    for (const [index, step] of steps.entries()) {
      if (index >= count) runStep(handle, step, index + 1);
    }
    handle.pragma(`user_version = ${steps.length}`);
    handle.exec('commit');
  } catch (error) {
    if (handle.inTransaction) handle.exec('rollback');
    throw error;
  }
}

function runStep(handle: SqliteHandle, step: string, version: number): void {
  try {
    handle.exec(step);
  } catch (cause) {
    const reason = `version ${version} of the schema: ${(cause as Error).message}`;
    throw new StorageVersionError(handle.name, reason, { cause });
  }
}
