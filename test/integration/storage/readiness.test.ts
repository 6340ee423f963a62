import { Client } from 'pg';
import { expect, test } from 'vitest';
import { waitUntilWritable } from '../../../src/admin/administration.ts';
import { entities } from '../../../src/domain/tables.ts';
import { openDatabase } from '../../../src/storage/open-database.ts';
import { freshPostgres } from '../../support/postgres/borrow-database.ts';
import { startPostgresProxy } from '../../support/postgres/postgres-proxy.ts';

const POOL = 2;

async function open(url: string) {
  const database = await openDatabase(entities, { kind: 'postgres', url, poolSize: POOL });
  return {
    orm: database.orm,
    check: () => database.readiness!.check(),
    [Symbol.asyncDispose]: () => database.close(),
  };
}

async function asOperator(url: string, sql: string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  await client.query(sql);
  await client.end();
}

test('a working database is ready', async () => {
  await using database = await open(await freshPostgres());
  await expect(database.check()).resolves.toBeUndefined();
});

test('one that lacks what this version uses is not ready; what a newer version has added does no harm', async () => {
  const url = await freshPostgres();
  await using database = await open(url);
  await asOperator(url, "insert into schema_migrations (name) values ('0998-of-tomorrow')");
  await asOperator(url, "insert into schema_migrations (name) values ('0999-drop-things-contract-0001')");
  await expect(database.check()).resolves.toBeUndefined();
  await asOperator(url, "insert into schema_migrations (name) values ('1000-drop-more-contract-0998')");
  await expect(database.check()).rejects.toThrow(
    /removed .* what this version uses \(`1000-drop-more-contract-0998`\)/,
  );
  await asOperator(url, "delete from schema_migrations where name > '0998'");
  await asOperator(url, 'alter table wallets rename column address to adress');
  await expect(database.check()).rejects.toThrow(/lacks columns that its migrations made: `wallets.address`/);
  await asOperator(url, 'alter table wallets rename column adress to address');
  await asOperator(url, 'delete from schema_migrations');
  await expect(database.check()).rejects.toThrow(/lacks \d+ migration/);
});

test('one that is read-only, as a standby is, is not ready', async () => {
  const url = await freshPostgres();
  await asOperator(
    url,
    `alter database "${new URL(url).pathname.slice(1)}" set default_transaction_read_only = on`,
  );
  await using database = await open(url);
  await expect(database.check()).rejects.toThrow('the database is read-only');
});

test('an unresponsive one is reported as not ready within seconds', async () => {
  await using proxy = await startPostgresProxy(await freshPostgres());
  await using database = await open(proxy.url);
  await database.check();
  proxy.break('select', 'silence');
  const startedMs = performance.now();
  await expect(database.check()).rejects.toThrow();
  expect(performance.now() - startedMs).toBeLessThan(10_000);
  proxy.heal();
  await expect
    .poll(
      () =>
        database.check().then(
          () => 'ready',
          () => 'not ready',
        ),
      { timeout: 30_000 },
    )
    .toBe('ready');
});

test('with an exhausted pool it is not ready, and the check does not wait for the pool', async () => {
  await using database = await open(await freshPostgres());
  const held = Array.from({ length: POOL * 2 }, () =>
    database.orm.em.fork().transactional((em) => em.execute('select pg_sleep(1.5)')),
  );
  await expect
    .poll(() =>
      database.check().then(
        () => '',
        (error: Error) => error.message,
      ),
    )
    .toBe(`all ${POOL} connections are busy and ${POOL} requests wait for one`);
  await Promise.all(held);
  await expect(database.check()).resolves.toBeUndefined();
});

test('a server that starts waits for a database that is read-only, as in a recovery, and then says so', async () => {
  const url = await freshPostgres();
  const name = new URL(url).pathname.slice(1);
  await asOperator(url, `alter database "${name}" set default_transaction_read_only = on`);
  await using database = await open(url);
  const warnings: string[] = [];
  const log = { warn: (_: object, message: string) => void warnings.push(message) };
  const limits = { limitMs: 20, everyMs: 5 };
  await expect(waitUntilWritable(database, log, limits)).rejects.toThrow(
    'the database is read-only after 0.02 s: start the server when',
  );
  expect(warnings).toEqual(['the database is read-only; waiting until it accepts changes']);
  await asOperator(
    `${url}?options=-c%20default_transaction_read_only=off`,
    `alter database "${name}" reset all`,
  );
  await using restarted = await open(url);
  await expect(waitUntilWritable(restarted, log, limits)).resolves.toBeUndefined();
});
