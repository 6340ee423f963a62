import { describe, expect, test } from 'vitest';
import { entities } from '../../../src/domain/tables.ts';
import { isUnavailable } from '../../../src/errors.ts';
import { openDatabase } from '../../../src/storage/open-database.ts';
import { freshPostgres } from '../../support/databases.ts';
import { type Fault, startPostgresProxy } from './postgres-proxy.ts';

const POOL = 3;
const quick = { connectMs: 600, statementMs: 600, lockMs: 300, idleInTransactionMs: 600, silenceMs: 900 };

async function open() {
  const proxy = await startPostgresProxy(await freshPostgres());
  const database = await openDatabase(entities, {
    kind: 'postgres',
    url: proxy.url,
    poolSize: POOL,
    timeouts: quick,
  });
  const write = () =>
    database.orm.em.fork().transactional(async (em) => {
      await em.execute(
        "insert into rate_probe (id) values ('one') on conflict (id) do update set id = excluded.id",
      );
    });
  await database.orm.em.fork().execute('create table rate_probe (id text primary key)');
  return {
    proxy,
    database,
    write,
    async [Symbol.asyncDispose]() {
      await database.close();
      await proxy[Symbol.asyncDispose]();
    },
  };
}

/** The error of a promise that must be rejected. */
const errorOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );

describe('a connection that is lost', () => {
  test.each<[at: string, fault: Fault]>([
    ['begin', 'cut'],
    ['begin', 'cut-answer'],
    ['insert into', 'cut'],
    ['insert into', 'cut-answer'],
    ['commit', 'cut'],
    ['commit', 'cut-answer'],
    ['insert into', 'silence'],
    ['begin', 'silence'],
  ])('at `%s` by a %s is replaced every time', async (at, fault) => {
    await using set = await open();
    set.proxy.break(at, fault);
    const rounds = fault === 'silence' ? POOL : POOL * 3;
    for (let round = 0; round < rounds; round += 1) {
      expect(isUnavailable(await errorOf(set.write())), `round ${round}`).toBe(true);
    }
    // A failed `begin` is retried on another connection.
    expect(set.proxy.faults).toBe(at === 'begin' && fault !== 'silence' ? rounds * 2 : rounds);
    set.proxy.heal();
    await Promise.all(Array.from({ length: POOL }, () => set.write()));
  });

  test('at the rollback of a refused statement is replaced', async () => {
    await using set = await open();
    set.proxy.break('rollback', 'cut');
    for (let round = 0; round < POOL * 2; round += 1) {
      const refused = set.database.orm.em.fork().transactional((em) => em.execute('select nonsense'));
      await expect(refused).rejects.toThrow();
    }
    set.proxy.heal();
    await Promise.all(Array.from({ length: POOL }, () => set.write()));
  });

  test('silently, as when a host disappears, is destroyed and replaced', async () => {
    await using set = await open();
    await Promise.all(Array.from({ length: POOL }, () => set.write()));
    set.proxy.silenceAll();
    const errors = await Promise.all(Array.from({ length: POOL }, () => errorOf(set.write())));
    expect(errors.map(isUnavailable)).toEqual(Array(POOL).fill(true));
    await Promise.all(Array.from({ length: POOL }, () => set.write()));
  });
});

test('connections that broke while idle fail no request', async () => {
  await using set = await open();
  await Promise.all(Array.from({ length: POOL }, () => set.write()));
  set.proxy.cutAll();
  await set.write();
  await set.database.orm.em.fork().execute('select 1');
});

test('a lock of another transaction, a slow statement and a full pool time out', async () => {
  await using set = await open();
  const fork = () => set.database.orm.em.fork();
  await fork().transactional(async (em) => {
    await em.execute('lock table rate_probe');
    expect(isUnavailable(await errorOf(set.write()))).toBe(true);
  });
  expect(isUnavailable(await errorOf(fork().execute('select pg_sleep(5)')))).toBe(true);
  const held = Array.from({ length: POOL }, () =>
    errorOf(
      fork().transactional(async (em) => {
        await em.execute('select 1 for update');
        await new Promise((resolve) => setTimeout(resolve, 1_500));
        await em.execute('select 1');
      }),
    ),
  );
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(isUnavailable(await errorOf(set.write()))).toBe(true);
  // They exceeded the server's limit for idle transactions.
  expect((await Promise.all(held)).map(isUnavailable)).toEqual(Array(POOL).fill(true));
  await set.write();
});

test('a transaction holds no connection before its first statement', async () => {
  await using set = await open();
  const forks = Array.from({ length: POOL * 3 }, () => set.database.orm.em.fork());
  await Promise.all(forks.map((em) => em.begin()));
  await set.write();
  await Promise.all(forks.map((em) => em.commit()));
});

test('concurrent statements begin their transaction once', async () => {
  await using set = await open();
  const counted = await set.database.orm.em
    .fork()
    .transactional((em) =>
      Promise.all(
        Array.from({ length: 5 }, () => em.execute<{ id: string }[]>('select pg_current_xact_id() as id')),
      ),
    );
  expect(new Set(counted.flat().map(({ id }) => String(id))).size).toBe(1);
});
