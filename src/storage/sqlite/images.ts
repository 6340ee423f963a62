import { resolve } from 'node:path';
import type { Database as SqliteHandle } from 'better-sqlite3';
import Sqlite from 'better-sqlite3';
import type { DatabaseImages } from '../open-database.ts';
import { flushFile } from './group-commit.ts';
import { replaceHandle, type SqliteSlot } from './sqlite-dialect.ts';
import { upgradeSqlite } from './upgrade-sqlite.ts';

/** The storage classes that SQLite gives to the values of a column, by the declared type of the column. */
const storageClasses: Readonly<Record<string, string>> = {
  TEXT: "'text'",
  BIGINT: "'integer'",
  INTEGER: "'integer'",
  BLOB: "'blob'",
  REAL: "'real', 'integer'",
};

/** The names of text columns with JSON, by table. */
type JsonColumns = ReadonlyMap<string, readonly string[]>;

/**
 * Returns why a server of this version cannot run on the image of a foreign database; undefined if it can.
 *
 * @param steps the SQL of the required schema, oldest first.
 */
export function damageOfImage(
  image: Buffer,
  steps: readonly string[],
  jsonColumns: JsonColumns = new Map(),
): string | undefined {
  return reading(image, (handle) => {
    // Check the schema first, because reading a table evaluates expressions of its schema.
    if (schemaOf(handle) !== expectedSchema(steps)) return 'its schema is not that of this version';
    const found = handle.pragma('integrity_check(1)', { simple: true });
    if (found !== 'ok') return String(found).slice(0, 200);
    return wrongValueOf(handle) ?? wrongJsonOf(handle, jsonColumns);
  });
}

/** Opens an image and returns the result of `work`, or the reason why the image cannot be read. */
function reading(image: Buffer, work: (handle: SqliteHandle) => string | undefined): string | undefined {
  let handle: SqliteHandle | undefined;
  try {
    handle = new Sqlite(image);
    handle.pragma('trusted_schema = OFF');
    return work(handle);
  } catch (error) {
    return (error as Error).message.slice(0, 200);
  } finally {
    handle?.close();
  }
}

/** The schemas that lists of migrations create. Cached, because running all migrations takes tens of milliseconds. */
const expectedSchemas = new Map<readonly string[], string>();

function expectedSchema(steps: readonly string[]): string {
  const known = expectedSchemas.get(steps);
  if (known !== undefined) return known;
  const handle = new Sqlite(':memory:');
  try {
    upgradeSqlite(handle, steps);
    const schema = schemaOf(handle);
    expectedSchemas.set(steps, schema);
    return schema;
  } finally {
    handle.close();
  }
}

function schemaOf(handle: SqliteHandle): string {
  const version = handle.pragma('user_version', { simple: true });
  const parts = handle
    .prepare(
      "select type, name, tbl_name, sql from sqlite_schema where name not like 'sqlite\\_stat%' escape '\\' order by type, name",
    )
    .all();
  return JSON.stringify([version, parts]);
}

/**
 * Returns a fault if a value does not have the type of its column. Columns of tables that are not strict accept any
 * type.
 */
function wrongValueOf(handle: SqliteHandle): string | undefined {
  const tables = handle
    .prepare("select name from sqlite_schema where type = 'table' and name not like 'sqlite\\_%' escape '\\'")
    .pluck()
    .all() as string[];
  for (const table of tables) {
    const columns = handle.pragma(`table_info("${table}")`) as { name: string; type: string }[];
    const wrong = columns.flatMap(({ name, type }) => {
      const classes = storageClasses[type.toUpperCase()];
      return classes === undefined ? [] : [`typeof("${name}") not in (${classes}, 'null')`];
    });
    if (handle.prepare(`select 1 from "${table}" where ${wrong.join(' or ')} limit 1`).get() !== undefined) {
      return `a row of \`${table}\` has a value that does not have the type of its column`;
    }
  }
  return undefined;
}

/**
 * Returns a fault if a JSON column contains a value that is not JSON. Every request that reads such a row would fail.
 */
function wrongJsonOf(handle: SqliteHandle, jsonColumns: JsonColumns): string | undefined {
  for (const [table, columns] of jsonColumns) {
    for (const column of columns) {
      const wrong = `"${column}" is not null and not json_valid("${column}")`;
      if (handle.prepare(`select 1 from "${table}" where ${wrong} limit 1`).get() !== undefined) {
        return `a row of \`${table}\` has text in \`${column}\` that is not JSON`;
      }
    }
  }
  return undefined;
}

/** Returns the values by which a database recognizes its master keys. */
export function masterKeyChecksIn(image: Buffer): MasterKeyCheckRow[] {
  const handle = new Sqlite(image);
  try {
    return handle
      .prepare(
        'select master_key_id as masterKeyId, sealed_secret as sealedSecret, wrapped_data_key as wrappedDataKey from master_key_checks',
      )
      .all() as MasterKeyCheckRow[];
  } finally {
    handle.close();
  }
}

interface MasterKeyCheckRow {
  readonly masterKeyId: string;
  readonly sealedSecret: Buffer;
  readonly wrappedDataKey: Buffer;
}

// The offsets of the format versions for writing and reading
// (https://www.sqlite.org/fileformat.html#the_database_header).
const WRITE_VERSION = 18;
const READ_VERSION = 19;
const ROLLBACK_JOURNAL = 1;
/** How long to wait while another process keeps the file locked. */
const LOCKED_MS = 5_000;
const ALL_PAGES = 0x7fff_ffff;

/** Returns the whole content of a database. `new Sqlite(image)` opens it in memory. */
export function imageOf(handle: SqliteHandle): Buffer {
  const image = handle.serialize();
  // A database in memory cannot use the write-ahead log of its file.
  image[WRITE_VERSION] = ROLLBACK_JOURNAL;
  image[READ_VERSION] = ROLLBACK_JOURNAL;
  return image;
}

/**
 * Replaces the content of a SQLite file in one transaction, so a killed process leaves either the old or the new
 * content. Open handles, also of other processes, see the new content.
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

/** How long to wait while a writer keeps the first database locked. */
const IMAGES_AT_ONCE_LOCKED_MS = 10_000;

/**
 * Copies several databases as of the same moment, while other processes use them. Writers of the first database wait
 * for less than a millisecond, and readers do not wait. The other databases are read while the first does not change,
 * so the copies contain no consequence of a later change.
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
  return new Sqlite(file, { fileMustExist: true, timeout: IMAGES_AT_ONCE_LOCKED_MS, readonly: isReader });
}

/** Returns the fault of a database file; undefined if it has none. */
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

/** Where a database is: in memory, with a function that opens an image, or in a file. */
type Place = { readonly open: (image: Buffer) => SqliteHandle } | { readonly file: string };

/**
 * Returns the functions that save and replace the content of a database in use. They wait until no transaction is open.
 */
export function sqliteImages(slot: SqliteSlot, place: Place): DatabaseImages {
  const alone = async <T>(work: () => T | Promise<T>): Promise<T> => {
    await slot.mutex.acquire();
    try {
      slot.commits.flush();
      return await work();
    } finally {
      slot.mutex.release();
    }
  };
  return {
    save: () => alone(() => imageOf(slot.handle)),
    load: (image) =>
      alone(async () => {
        if ('file' in place) await replaceContent(place.file, image);
        else replaceHandle(slot, place.open(image)).close();
      }),
  };
}
