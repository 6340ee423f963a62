import { entities } from '../../src/domain/tables.ts';
import { type Database, openDatabase } from '../../src/storage/open-database.ts';
import { recordEvents } from '../ledger/record-events.ts';
import { freshPostgres } from './postgres/borrow-database.ts';

/** The kinds of databases for storage and integration tests: `describe.each(databaseKinds)`. */
export const databaseKinds = ['sqlite', 'postgres'] as const;
export type DatabaseKind = (typeof databaseKinds)[number];

export type TestDatabase = Database &
  AsyncDisposable & {
    /** The URL for other connections. Undefined for SQLite in memory. */
    readonly url: string | undefined;
  };

/**
 * Opens a new empty database with the schema of this version.
 *
 * @param file the file of SQLite. By default, it is in memory.
 */
export async function openTestDatabase(
  kind: DatabaseKind,
  { poolSize, file }: { readonly poolSize?: number | undefined; readonly file?: string | undefined } = {},
): Promise<TestDatabase> {
  if (kind === 'sqlite') return reopenTestDatabase({ kind, file: file ?? ':memory:' });
  return reopenTestDatabase({ kind, url: await freshPostgres(), poolSize: poolSize ?? 8 });
}

/** Opens an existing database. */
export async function reopenTestDatabase(
  options: { kind: 'sqlite'; file: string } | { kind: 'postgres'; url: string; poolSize: number },
): Promise<TestDatabase> {
  const database = await openDatabase(entities, options);
  const url = options.kind === 'postgres' ? options.url : undefined;
  const close = async (): Promise<void> => {
    await recordEvents(database);
    await database.close();
  };
  return { ...database, url, close, [Symbol.asyncDispose]: close };
}
