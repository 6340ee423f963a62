import type { Database as SqliteHandle } from 'better-sqlite3';
import { sandboxSchema, sandboxSchemaVersion } from './generated/sandbox-schema.ts';
import type { Orm } from './open-database.ts';

/** A SQLite file whose schema this version cannot read. */
export class StorageVersionError extends Error {
  constructor(file: string, reason: string) {
    super(
      `the data in \`${file}\` was written by another version and cannot be brought up to date (${reason}); ` +
        'run the version that wrote it, or begin with an empty folder',
    );
    this.name = 'StorageVersionError';
  }
}

/**
 * Gives a SQLite file this version's schema: a new file all of it, an older file the tables, columns and
 * indexes that it lacks. Nothing is ever dropped.
 *
 * @throws StorageVersionError when more than additions would be needed; the file is then as it was.
 */
export async function prepareSandboxSchema(handle: SqliteHandle, orm: Orm): Promise<void> {
  if (handle.pragma('user_version', { simple: true }) === sandboxSchemaVersion) return;
  handle.exec('begin immediate');
  try {
    // Another process may have been quicker.
    if (handle.pragma('user_version', { simple: true }) !== sandboxSchemaVersion) {
      if (isEmpty(handle)) handle.exec(sandboxSchema);
      else await bringUpToDate(handle, orm);
      handle.pragma(`user_version = ${sandboxSchemaVersion}`);
    }
    handle.exec('commit');
  } catch (error) {
    if (handle.inTransaction) handle.exec('rollback');
    throw error;
  }
}

function isEmpty(handle: SqliteHandle): boolean {
  return handle.prepare("select 1 from sqlite_master where type = 'table' limit 1").get() === undefined;
}

async function bringUpToDate(handle: SqliteHandle, orm: Orm): Promise<void> {
  const additions = await orm.schema.getUpdateSchemaSQL({ wrap: false, safe: true, dropTables: false });
  try {
    handle.exec(additions);
  } catch (error) {
    throw new StorageVersionError(handle.name, (error as Error).message);
  }
  const left = await orm.schema.getUpdateSchemaSQL({ wrap: false });
  if (left.trim() !== '') throw new StorageVersionError(handle.name, left.trim().split('\n')[0] as string);
}
