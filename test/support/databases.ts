import { inject } from 'vitest';
import { entities } from '../../src/domain/tables.ts';
import { type Database, openDatabase } from '../../src/storage/open-database.ts';
import { recordEvents } from '../ledger/record-events.ts';

/** The databases of all storage and integration tests: `describe.each(databaseKinds)`. */
export const databaseKinds = ['sqlite', 'postgres'] as const;
export type DatabaseKind = (typeof databaseKinds)[number];

export type TestDatabase = Database &
  AsyncDisposable & {
    /** Where another connection reaches it; undefined for SQLite in memory. */
    readonly url: string | undefined;
  };

/** A new empty database with the schema of this version. */
export async function openTestDatabase(
  kind: DatabaseKind,
  { poolSize = 8 }: { readonly poolSize?: number | undefined } = {},
): Promise<TestDatabase> {
  const url = kind === 'postgres' ? await freshPostgres() : undefined;
  const database = await openDatabase(
    entities,
    url === undefined ? { kind: 'sqlite', file: ':memory:' } : { kind: 'postgres', url, poolSize },
  );
  const close = async (): Promise<void> => {
    await recordEvents(database);
    await database.close();
  };
  return { ...database, url, close, [Symbol.asyncDispose]: close };
}

/** The URL of a new migrated, empty PostgreSQL database. */
export async function freshPostgres(): Promise<string> {
  const answer = await fetch(inject('databaseDesk'));
  const text = await answer.text();
  if (!answer.ok) throw new Error(`PostgreSQL could not be started: ${text}`);
  return text;
}
