import { resolve } from 'node:path';
import Sqlite from 'better-sqlite3';
import { flushFile } from '../sqlite/commit-group.ts';
import { imageOf } from './sqlite-image.ts';

/** How long a writer may keep the first database locked. */
const LOCKED_MS = 10_000;

/**
 * The content of several databases at one moment, while other processes use them. Writers of the first one wait for
 * less than a millisecond, readers not at all. The others are read at a moment when the first one does not change, so they
 * contain nothing that follows from later changes of it.
 */
export function imagesAtOnce([first, ...others]: readonly [string, ...string[]]): Buffer[] {
  const writer = open(first, false);
  const readers: Sqlite.Database[] = [];
  try {
    flushFile(resolve(first));
    writer.exec('begin immediate');
    for (const file of [first, ...others]) {
      const reader = open(file, true);
      readers.push(reader);
      reader.exec('begin');
      // A transaction sees the database as of its first read.
      reader.prepare('select count(*) from sqlite_schema').get();
    }
    writer.exec('rollback');
    return readers.map(imageOf);
  } finally {
    for (const handle of [...readers, writer]) handle.close();
  }
}

function open(file: string, isReader: boolean): Sqlite.Database {
  return new Sqlite(file, { fileMustExist: true, timeout: LOCKED_MS, readonly: isReader });
}

/** What is wrong with a database file; undefined if nothing is. */
export function damageOf(file: string): string | undefined {
  try {
    const handle = new Sqlite(file, { fileMustExist: true, readonly: true });
    try {
      const found = handle.pragma('integrity_check(1)', { simple: true }) as string;
      return found === 'ok' ? undefined : found;
    } finally {
      handle.close();
    }
  } catch (error) {
    return (error as Error).message;
  }
}
