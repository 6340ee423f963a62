import Sqlite, { type Database as SqliteHandle } from 'better-sqlite3';
import { upgradeSqlite } from '../sqlite/upgrade-sqlite.ts';

/** The storage classes that SQLite gives the values of a column, by its declared type. */
const storageClasses: Readonly<Record<string, string>> = {
  TEXT: "'text'",
  BIGINT: "'integer'",
  INTEGER: "'integer'",
  BLOB: "'blob'",
  REAL: "'real', 'integer'",
};

/** Columns of text that contain JSON, by table. */
export type JsonColumns = ReadonlyMap<string, readonly string[]>;

/**
 * Why a server of this version could not run on the image of a database that comes from elsewhere; undefined if it can.
 *
 * @param steps SQL of the schema that it must have, oldest first.
 */
export function damageOfImage(
  image: Buffer,
  steps: readonly string[],
  jsonColumns: JsonColumns = new Map(),
): string | undefined {
  return reading(image, (handle) => {
    // The schema first: reading a table runs expressions that its schema contains.
    if (schemaOf(handle) !== expectedSchema(steps)) return 'its schema is not that of this version';
    const found = handle.pragma('integrity_check(1)', { simple: true });
    if (found !== 'ok') return String(found).slice(0, 200);
    return wrongValueOf(handle) ?? wrongJsonOf(handle, jsonColumns);
  });
}

/** The result of work on an image, or why the image cannot be read. */
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

/** Running all migrations takes tens of milliseconds. */
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

/** Columns outside of strict tables accept values of any type. */
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
      return `a row of \`${table}\` has a value of another type than its column`;
    }
  }
  return undefined;
}

/** One row whose JSON cannot be parsed makes every request fail that reads it. */
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

/** The values by which a database recognizes its master keys. */
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
