import { setTimeout as pause } from 'node:timers/promises';
import { Client } from 'pg';
import { describe, expect, test } from 'vitest';
import { entities } from '../../../src/domain/tables.ts';
import { isUnavailable } from '../../../src/errors.ts';
import { openDatabase } from '../../../src/storage/open-database.ts';
import type { PostgresTimeouts } from '../../../src/storage/postgres-dialect.ts';
import { freshPostgres } from '../../support/postgres/borrow-database.ts';
import { type Fault, startPostgresProxy } from '../../support/postgres/postgres-proxy.ts';

const POOL = 3;
/** However busy the machine is, nothing takes that long. Each test shortens what it is about. */
const patient = {
  ...{ connectMs: 80_000, statementMs: 80_000, lockMs: 80_000 },
  ...{ idleInTransactionMs: 80_000, silenceMs: 80_000 },
};
/** Silence begins at once, but answers may take a while. */
const silent = { silenceMs: 2_000 };

async function open(
  timeouts: Partial<PostgresTimeouts> = {},
  quiet: { readonly responses?: { lastMs: number }; readonly quietMs?: number } = {},
) {
  const url = await freshPostgres();
  const observer = new Client({ connectionString: url });
  await observer.connect();
  await observer.query('create table rate_probe (id text primary key)');
  const proxy = await startPostgresProxy(url);
  const database = await openDatabase(entities, {
    kind: 'postgres',
    url: proxy.url,
    poolSize: POOL,
    timeouts: { ...patient, ...timeouts },
    ...quiet,
  });
  const write = () =>
    database.orm.em.fork().transactional(async (em) => {
      await em.execute(
        "insert into rate_probe (id) values ('one') on conflict (id) do update set id = excluded.id",
      );
    });
  return {
    proxy,
    /** A connection that bypasses the proxy. */
    observer,
    database,
    write,
    async [Symbol.asyncDispose]() {
      await database.close();
      await proxy[Symbol.asyncDispose]();
      await observer.end();
    },
  };
}

/** The error of a promise that must be rejected. */
const errorOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );

// They wait beside each other: each has a database of its own.
describe.concurrent('a connection that is lost', () => {
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
    await using set = await open(fault === 'silence' ? silent : {});
    set.proxy.break(at, fault);
    // Silence takes long, so all connections are silent at once.
    const [rounds, atOnce] = fault === 'silence' ? [2, POOL] : [POOL * 3, 1];
    for (let round = 0; round < rounds; round += 1) {
      const errors = await Promise.all(Array.from({ length: atOnce }, () => errorOf(set.write())));
      expect(errors.map(isUnavailable), `round ${round}`).toEqual(Array(atOnce).fill(true));
    }
    // A failed `begin` is retried on another connection.
    const writes = rounds * atOnce;
    expect(set.proxy.faults).toBe(at === 'begin' && fault !== 'silence' ? writes * 2 : writes);
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
    await using set = await open(silent);
    await Promise.all(Array.from({ length: POOL }, () => set.write()));
    set.proxy.silenceAll();
    const errors = await Promise.all(Array.from({ length: POOL }, () => errorOf(set.write())));
    expect(errors.map(isUnavailable)).toEqual(Array(POOL).fill(true));
    await Promise.all(Array.from({ length: POOL }, () => set.write()));
  });
});

describe.concurrent('while no connection gets a response', () => {
  const quietMs = 1_000;

  test.each(['select', 'insert into'])('a `%s` is given up early', async (at) => {
    await using set = await open({}, { responses: { lastMs: 0 }, quietMs });
    await set.write();
    set.proxy.break(at, 'silence');
    const read = () => set.database.orm.em.fork().execute('select 1');
    expect(isUnavailable(await errorOf(at === 'select' ? read() : set.write()))).toBe(true);
  });

  test('a commit may still succeed, so it is waited for', async () => {
    await using set = await open(silent, { responses: { lastMs: 0 }, quietMs });
    set.proxy.break('commit', 'silence');
    const startedMs = performance.now();
    expect(isUnavailable(await errorOf(set.write()))).toBe(true);
    expect(performance.now() - startedMs).toBeGreaterThan(silent.silenceMs - 100);
  });

  test('a statement is waited for if other connections get responses', async () => {
    const responses = {
      get lastMs() {
        return performance.now();
      },
      set lastMs(_: number) {},
    };
    await using set = await open(silent, { responses, quietMs });
    set.proxy.break('select', 'silence');
    const startedMs = performance.now();
    expect(isUnavailable(await errorOf(set.database.orm.em.fork().execute('select 1')))).toBe(true);
    expect(performance.now() - startedMs).toBeGreaterThan(silent.silenceMs - 100);
  });
});

test('connections that broke while idle fail no request', async () => {
  await using set = await open();
  await Promise.all(Array.from({ length: POOL }, () => set.write()));
  set.proxy.cutAll();
  await set.write();
  await set.database.orm.em.fork().execute('select 1');
});

test('a lock of another transaction times out', async () => {
  await using set = await open({ lockMs: 300 });
  await set.database.orm.em.fork().transactional(async (em) => {
    await em.execute('lock table rate_probe');
    expect(isUnavailable(await errorOf(set.write()))).toBe(true);
  });
  await set.write();
});

test.concurrent('a slow statement times out', async () => {
  await using set = await open({ statementMs: 2_000 });
  expect(isUnavailable(await errorOf(set.database.orm.em.fork().execute('select pg_sleep(80)')))).toBe(true);
  await set.write();
});

/** Holds all connections, each with a transaction that is idle until `release`. */
async function holdPool({ database }: Pick<Awaited<ReturnType<typeof open>>, 'database'>) {
  const released = Promise.withResolvers<void>();
  const begun = Array.from({ length: POOL }, () => Promise.withResolvers<number>());
  const held = begun.map(({ resolve }) =>
    database.orm.em.fork().transactional(async (em) => {
      const [row] = await em.execute<{ pid: number }[]>('select pg_backend_pid() as pid');
      resolve(row!.pid);
      await released.promise;
      await em.execute('select 1');
    }),
  );
  const pids = await Promise.all(begun.map(({ promise }) => promise));
  return { pids, ended: Promise.all(held.map(errorOf)), release: released.resolve };
}

test.concurrent('a full pool times out, and serves again afterwards', async () => {
  await using set = await open({ connectMs: 3_000 });
  const { ended, release } = await holdPool(set);
  expect(isUnavailable(await errorOf(set.write()))).toBe(true);
  release();
  expect(await ended).toEqual(Array(POOL).fill(undefined));
  await set.write();
});

test.concurrent('a transaction that is idle for too long is ended, and its connection replaced', async () => {
  await using set = await open({ idleInTransactionMs: 600 });
  const { pids, ended, release } = await holdPool(set);
  const remaining = async () =>
    (await set.observer.query('select pid from pg_stat_activity where pid = any($1)', [pids])).rowCount;
  while ((await remaining()) !== 0) await pause(50);
  release();
  expect((await ended).map(isUnavailable)).toEqual(Array(POOL).fill(true));
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
