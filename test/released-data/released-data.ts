import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import type { OperationId } from '../../src/generated/operations.ts';

/*
 * What a version had written when it was released, kept as text: the folder of a sandbox that made a bit of everything,
 * and what it answered about it. Later versions must bring the data up to date and answer the same.
 */

/** A column's value; bytes as `{ hex }`. */
type StoredValue = string | number | null | { readonly hex: string };
export type StoredRow = Readonly<Record<string, StoredValue>>;

/** A SQLite file: its version, and the rows of each table. */
export interface StoredFile {
  readonly userVersion: number;
  /** Steps of its schema, by which the tables are made again. */
  readonly steps: number;
  readonly tables: Readonly<Record<string, readonly StoredRow[]>>;
}

/** A call that changes nothing, and its response. */
export interface RecordedCall {
  readonly operation: OperationId;
  readonly path?: object;
  readonly query?: object;
  readonly body?: unknown;
  readonly status: number;
  readonly answer: unknown;
}

export interface ReleasedData {
  /** `sandbox.json`, with the master key that opens the sealed keys. */
  readonly memory: { readonly appId: string; readonly appSecret: string; readonly masterKeyHex: string };
  /** The clock of the sandbox in the end, Unix ms. */
  readonly nowMs: number;
  readonly database: StoredFile;
  readonly chains: StoredFile;
  readonly calls: readonly RecordedCall[];
}

const folder = import.meta.dirname;

export function readReleasedData(name: string): ReleasedData {
  return JSON.parse(readFileSync(join(folder, `${name}.json`), 'utf8')) as ReleasedData;
}

export function writeReleasedData(name: string, data: ReleasedData): void {
  writeFileSync(join(folder, `${name}.json`), `${JSON.stringify(data, undefined, 1)}\n`, { flag: 'wx' });
}

/** Reads every row of a SQLite file. */
export function readSqliteFile(file: string, steps: number): StoredFile {
  const handle = new Sqlite(file, { readonly: true });
  try {
    const names = handle
      .prepare<[], { name: string }>(
        "select name from sqlite_master where type = 'table' and name not like 'sqlite_%' order by name",
      )
      .all();
    const tables = names.map(({ name }): [string, StoredRow[]] => [
      name,
      handle
        .prepare<[], Record<string, string | number | null | Buffer>>(`select * from ${name}`)
        .all()
        .map(storedRow),
    ]);
    const userVersion = handle.pragma('user_version', { simple: true }) as number;
    return { userVersion, steps, tables: Object.fromEntries(tables.filter(([, rows]) => rows.length > 0)) };
  } finally {
    handle.close();
  }
}

export function storedRow(row: Readonly<Record<string, unknown>>): StoredRow {
  return Object.fromEntries(
    Object.entries(row).map(([column, value]) => [
      column,
      value instanceof Uint8Array
        ? { hex: Buffer.from(value).toString('hex') }
        : (value as string | number | null),
    ]),
  );
}

/** The values of a row as drivers take them. */
export function columnValues(row: StoredRow): (string | number | null | Buffer)[] {
  return Object.values(row).map((value) =>
    value !== null && typeof value === 'object' ? Buffer.from(value.hex, 'hex') : value,
  );
}

/** Writes a SQLite file as the version of that time had left it. */
export function writeSqliteFile(file: string, stored: StoredFile, steps: readonly string[]): void {
  const handle = new Sqlite(file);
  try {
    handle.pragma('journal_mode = WAL');
    for (const step of steps.slice(0, stored.steps)) handle.exec(step);
    for (const [table, rows] of Object.entries(stored.tables)) {
      for (const row of rows) {
        const marks = Object.keys(row).map(() => '?');
        handle
          .prepare(`insert into ${table} (${Object.keys(row).join(', ')}) values (${marks.join(', ')})`)
          .run(...columnValues(row));
      }
    }
    handle.pragma(`user_version = ${stored.userVersion}`);
  } finally {
    handle.close();
  }
}

/** Makes the folder of a sandbox again. */
export function writeReleasedFolder(
  path: string,
  { memory, database, chains }: ReleasedData,
  steps: { readonly database: readonly string[]; readonly chains: readonly string[] },
): void {
  mkdirSync(path, { recursive: true });
  writeFileSync(join(path, 'sandbox.json'), JSON.stringify(memory));
  writeSqliteFile(join(path, 'custos.sqlite'), database, steps.database);
  writeSqliteFile(join(path, 'chain.sqlite'), chains, steps.chains);
}
