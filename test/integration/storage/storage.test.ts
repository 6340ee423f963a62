import type { SqlEntityManager } from '@mikro-orm/sql';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { entities, type Tables } from '../../../src/domain/tables.ts';
import { isUnavailable } from '../../../src/errors.ts';
import { isUniqueViolation } from '../../../src/storage/database-errors.ts';
import { migrate, pendingMigrations } from '../../../src/storage/migrate.ts';
import { migrations } from '../../../src/storage/migrations/migrations.ts';
import { openDatabase, resetDatabase } from '../../../src/storage/open-database.ts';
import { databaseKinds, openTestDatabase, type TestDatabase } from '../../support/databases.ts';
import { freshPostgres } from '../../support/postgres/borrow-database.ts';

const acme = {
  id: 'acme',
  name: 'Acme',
  secret_hashes: '[]',
  settings: '{}',
  created_at_ms: 1_767_225_600_123,
};

describe.each(databaseKinds)('%s', (kind) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await openTestDatabase(kind);
  });
  afterAll(() => database.close());
  beforeEach(() => resetDatabase(database));

  const fork = () => database.orm.em.fork();
  const insertApp = (em: SqlEntityManager, id = 'acme') =>
    em
      .getKysely<Tables>()
      .insertInto('apps')
      .values({ ...acme, id })
      .execute();
  const appIds = async (em: SqlEntityManager = fork()) =>
    (await em.getKysely<Tables>().selectFrom('apps').select('id').orderBy('id').execute()).map(
      ({ id }) => id,
    );

  test('the schema matches the entities', async () => {
    expect(await database.orm.schema.getUpdateSchemaSQL({ wrap: false })).toBe('');
  });

  test('Kysely of an entity manager takes part in its transaction', async () => {
    const failed = fork().transactional(async (em) => {
      await insertApp(em as SqlEntityManager);
      expect(await appIds(em as SqlEntityManager)).toEqual(['acme']);
      throw new Error('undo');
    });
    await expect(failed).rejects.toThrow('undo');
    expect(await appIds()).toEqual([]);

    const em = fork();
    await em.begin();
    await insertApp(em);
    await em.commit();
    expect(await appIds()).toEqual(['acme']);
  });

  test('a nested transaction is rolled back alone', async () => {
    await fork().transactional(async (outer) => {
      await insertApp(outer as SqlEntityManager, 'outer');
      const nested = outer.transactional(async (inner) => {
        await insertApp(inner as SqlEntityManager, 'inner');
        throw new Error('undo');
      });
      await expect(nested).rejects.toThrow('undo');
      await insertApp(outer as SqlEntityManager, 'after');
    });
    expect(await appIds()).toEqual(['after', 'outer']);
  });

  test('times and sequences are read as numbers, bytes as bytes', async () => {
    await insertApp(fork());
    const db = fork().getKysely<Tables>();
    const app = await db.selectFrom('apps').selectAll().executeTakeFirst();
    expect(app).toEqual(acme);
    const sealed = { sealed_secret: Buffer.from([0, 1, 255]), wrapped_data_key: Buffer.alloc(0) };
    const key = {
      wallet_id: 'w',
      ...sealed,
      master_key_id: 'k',
      entropy_type: 'hd',
      derivation_path: null,
      wallet_index: 0,
      authority: null,
    };
    await db.insertInto('wallet_keys').values(key).execute();
    expect(await db.selectFrom('wallet_keys').selectAll().executeTakeFirst()).toEqual(key);
    const { rows } = await db.executeQuery<{ total: number }>(
      db
        .selectFrom('apps')
        .select((of) => of.fn.countAll<number>().as('total'))
        .compile(),
    );
    expect(rows).toEqual([{ total: 1 }]);
  });

  test('a duplicate under a unique key is distinguished from other errors', async () => {
    await insertApp(fork());
    const error = await insertApp(fork()).catch((reason: unknown) => reason);
    expect(isUniqueViolation(error)).toBe(true);
    const other = await fork()
      .execute('select nothing from nowhere')
      .catch((reason: unknown) => reason);
    expect(other).toBeInstanceOf(Error);
    expect(isUniqueViolation(other)).toBe(false);
  });

  test('a reset empties every table and restarts the sequences', async () => {
    const event = { app_id: 'acme', type: 't', payload: '{}', resource_id: null, created_at_ms: 1 };
    const record = (id: string) =>
      fork()
        .getKysely<Tables>()
        .insertInto('outbox_events')
        .values({ id, ...event })
        .execute();
    for (let index = 0; index < 50; index += 1) {
      await insertApp(fork(), `app-${index}`);
      await record(`msg-${index}`);
    }
    await resetDatabase(database);
    expect(await appIds()).toEqual([]);
    await record('again');
    const first = await fork().getKysely<Tables>().selectFrom('outbox_events').select('sequence').execute();
    expect(first).toEqual([{ sequence: 1 }]);
  });
});

describe('migrations', () => {
  const names = migrations.map(({ name }) => name);

  test('migrate an empty database to the schema of the entities, one process at a time', async () => {
    const url = await freshPostgres();
    const one = await openDatabase(entities, { kind: 'postgres', url, poolSize: 1 });
    const two = await openDatabase(entities, { kind: 'postgres', url, poolSize: 1 });
    await one.orm.em.fork().execute('drop schema public cascade');
    await one.orm.em.fork().execute('create schema public');
    expect(await pendingMigrations(one.orm)).toEqual(names);
    const run = await Promise.all([migrate(one.orm), migrate(two.orm)]);
    expect(run.flat()).toEqual(names);
    expect(await pendingMigrations(two.orm)).toEqual([]);
    expect(await migrate(two.orm)).toEqual([]);
    // The printed difference belongs into the next migration.
    expect(await two.orm.schema.getUpdateSchemaSQL({ wrap: false })).toBe('');
    await Promise.all([one.close(), two.close()]);
  });

  test('migrations that fail change nothing', async () => {
    const url = await freshPostgres();
    await using database = closing(await openDatabase(entities, { kind: 'postgres', url, poolSize: 1 }));
    await database.orm.em.fork().execute('drop schema public cascade; create schema public');
    // Conflicts with the migration, which creates its tables in alphabetical order.
    await database.orm.em.fork().execute('create table wallets (id text)');
    await expect(migrate(database.orm)).rejects.toThrow(/wallets/);
    const tables = await database.orm.em
      .fork()
      .execute("select table_name from information_schema.tables where table_schema = 'public' order by 1");
    expect(tables).toEqual([{ table_name: 'schema_migrations' }, { table_name: 'wallets' }]);
    expect(await pendingMigrations(database.orm)).toEqual(names);
  });
});

test('connections that PostgreSQL drops are replaced, also within a transaction', async () => {
  const url = await freshPostgres();
  const heard: string[] = [];
  const onConnectionError = (error: Error) => heard.push(error.message);
  await using database = closing(
    await openDatabase(entities, { kind: 'postgres', url, poolSize: 2, onConnectionError }),
  );
  await using operator = closing(await openDatabase(entities, { kind: 'postgres', url, poolSize: 1 }));
  for (let round = 0; round < 4; round += 1) {
    const cut = database.orm.em.fork().transactional(async (em) => {
      const [row] = await em.execute<{ pid: number }[]>('select pg_backend_pid() as pid');
      await operator.orm.em.fork().execute('select pg_terminate_backend(?)', [row?.pid]);
      await em.execute('select 1');
    });
    await expect(cut, `round ${round}`).rejects.toThrow();
  }
  const [idle] = await database.orm.em.fork().execute<{ pid: number }[]>('select pg_backend_pid() as pid');
  await operator.orm.em.fork().execute('select pg_terminate_backend(?)', [idle?.pid]);
  await expect.poll(() => heard.length).toBeGreaterThan(0);
  expect(await database.orm.em.fork().execute('select 1 as one')).toEqual([{ one: 1 }]);
});

test('every statement after a connection has broken is reported as unavailable, not as a bug', async () => {
  const url = await freshPostgres();
  await using database = closing(await openDatabase(entities, { kind: 'postgres', url, poolSize: 2 }));
  await using operator = closing(await openDatabase(entities, { kind: 'postgres', url, poolSize: 1 }));
  const broken: boolean[] = [];
  const cut = database.orm.em.fork().transactional(async (em) => {
    const [row] = await em.execute<{ pid: number }[]>('select pg_backend_pid() as pid');
    await operator.orm.em.fork().execute('select pg_terminate_backend(?)', [row?.pid]);
    const later = await Promise.allSettled([em.execute('select 1'), em.execute('select 2')]);
    broken.push(...later.map((each) => each.status === 'rejected' && isUnavailable(each.reason)));
    throw new Error('cut');
  });
  await expect(cut).rejects.toThrow();
  expect(broken).toEqual([true, true]);
});

function closing<T extends { close(): Promise<void> }>(database: T): T & AsyncDisposable {
  return { ...database, [Symbol.asyncDispose]: () => database.close() };
}
