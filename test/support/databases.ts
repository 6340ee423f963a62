import { inject } from 'vitest';
import { entities } from '../../src/domain/tables.ts';
import { type Database, openDatabase } from '../../src/storage/open-database.ts';
import { recordEvents } from '../ledger/record-events.ts';

/** The databases that every storage and integration test runs on: `describe.each(databaseKinds)`. */
export const databaseKinds = ['sqlite', 'postgres'] as const;
export type DatabaseKind = (typeof databaseKinds)[number];

export type TestDatabase = Database &
  AsyncDisposable & {
    /** Where another connection reaches it; undefined for SQLite in memory. */
    readonly url: string | undefined;
  };

/** An empty database with this version's schema, for this caller alone. */
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

/** The URL of a migrated, empty PostgreSQL database, for this caller alone. */
export async function freshPostgres(): Promise<string> {
  const answer = await fetch(inject('databaseDesk'));
  const text = await answer.text();
  if (!answer.ok) throw new Error(`PostgreSQL could not be started: ${text}`);
  return text;
}
