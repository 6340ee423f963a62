import { Client } from 'pg';
import { expect, test } from 'vitest';
import { freshPostgres, returnDatabases } from '../../support/postgres/borrow-database.ts';

async function ask(url: URL | string, query: string, values: unknown[] = []): Promise<unknown[]> {
  const client = new Client({ connectionString: String(url) });
  await client.connect();
  try {
    return (await client.query(query, values)).rows;
  } finally {
    await client.end();
  }
}

test('databases that are returned are dropped, as soon as they have no connection', async () => {
  const [unused, used] = [await freshPostgres(), await freshPostgres()];
  const names = [unused, used].map((url) => new URL(url).pathname.slice(1));
  const existing = async (): Promise<unknown[]> => {
    const rows = await ask(
      new URL('/postgres', used),
      'select datname as name from pg_database where datname = any($1)',
      [names],
    );
    return rows.map((row) => (row as { name: string }).name);
  };
  const client = new Client({ connectionString: used });
  await client.connect();
  await returnDatabases();
  expect(await existing()).toEqual(names.slice(1));
  await client.end();
  // The server takes a moment to notice.
  const returnAnother = async (): Promise<unknown[]> => {
    await freshPostgres();
    await returnDatabases();
    return existing();
  };
  await expect.poll(returnAnother, { timeout: 60_000 }).toEqual([]);
});

test('a new database has the schema and no rows, whatever was done to the one before', async () => {
  const inDeletedUsers = 'select id from deleted_users';
  const before = await freshPostgres();
  await ask(before, "insert into deleted_users values ('one', 'app', 1)");
  await ask(before, 'alter table wallets rename column address to adress');
  await returnDatabases();
  const next = await freshPostgres();
  expect(next).not.toBe(before);
  expect(await ask(next, inDeletedUsers)).toEqual([]);
  expect(await ask(next, 'select address from wallets')).toEqual([]);
});
