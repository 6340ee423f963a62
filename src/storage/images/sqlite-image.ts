import Sqlite, { type Database as SqliteHandle } from 'better-sqlite3';

// https://www.sqlite.org/fileformat.html#the_database_header: the versions of the format for writing and for reading.
const WRITE_VERSION = 18;
const READ_VERSION = 19;
const ROLLBACK_JOURNAL = 1;
/** How long another process may keep the file locked. */
const LOCKED_MS = 5_000;
const ALL_PAGES = 0x7fff_ffff;

/** The whole content of a database, which `new Sqlite(image)` opens in memory. */
export function imageOf(handle: SqliteHandle): Buffer {
  const image = handle.serialize();
  // A database in memory cannot have the write-ahead log that its file had.
  image[WRITE_VERSION] = ROLLBACK_JOURNAL;
  image[READ_VERSION] = ROLLBACK_JOURNAL;
  return image;
}

/**
 * Replaces the content of a SQLite file in one transaction, so that a killed process leaves the old or the new content.
 * Open handles, of other processes too, see the new content.
 */
export async function replaceContent(file: string, image: Buffer): Promise<void> {
  const source = new Sqlite(image);
  const untilMs = performance.now() + LOCKED_MS;
  try {
    await source.backup(file, {
      progress: () => {
        if (performance.now() > untilMs) throw new Error(`\`${file}\` is locked by another process`);
        return ALL_PAGES;
      },
    });
  } finally {
    source.close();
  }
}
