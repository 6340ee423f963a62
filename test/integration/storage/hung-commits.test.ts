import { setTimeout as pause } from 'node:timers/promises';
import { Client } from 'pg';
import { expect, test } from 'vitest';
import { entities } from '../../../src/domain/tables.ts';
import { isUnavailable } from '../../../src/errors.ts';
import { openDatabase } from '../../../src/storage/open-database.ts';
import { freshPostgres } from '../../support/postgres/borrow-database.ts';

const POOL = 6;
const SPARED = 2;
const silenceMs = 400;
const timeouts = {
  connectMs: 1_000,
  statementMs: 10_000,
  lockMs: 10_000,
  idleInTransactionMs: 10_000,
  silenceMs,
};

/** A database whose commits wait for a standby that is not there. Those of other databases of the server wait for none. */
async function openWithoutStandby(more = '') {
  const url = await freshPostgres();
  const observer = new Client({ connectionString: url });
  await observer.connect();
  await observer.query('set synchronous_commit = off');
  await observer.query('create table hung_probe (id integer primary key)');
  await observer.query(`alter database ${new URL(url).pathname.slice(1)} set synchronous_commit = on`);
  await observer.query("alter system set synchronous_standby_names = 'absent'");
  await observer.query('select pg_reload_conf()');
  const database = await openDatabase(entities, {
    ...{ kind: 'postgres', url: `${url}${more}`, poolSize: POOL, timeouts },
  });
  const standbyReturns = async (): Promise<void> => {
    await observer.query('alter system reset synchronous_standby_names');
    await observer.query('select pg_reload_conf()');
  };
  return {
    database,
    standbyReturns,
    async backends(): Promise<{ all: number; hung: number }> {
      const { rows } = await observer.query<{ all: number; hung: number }>(
        `select count(*)::integer as all, (count(*) filter (where wait_event = 'SyncRep'))::integer as hung
         from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`,
      );
      return rows[0]!;
    },
    /** The rows that are visible to others. */
    async rows(): Promise<number[]> {
      const { rows } = await observer.query<{ id: number }>('select id from hung_probe order by id');
      return rows.map(({ id }) => id);
    },
    write: (id: number) =>
      database.orm.em.fork().transactional(async (em) => {
        await em.execute('insert into hung_probe (id) values (?)', [id]);
      }),
    forget: () => observer.end(),
    read: () => database.orm.em.fork().execute('select id from hung_probe limit 1'),
    async [Symbol.asyncDispose]() {
      await standbyReturns();
      await database.close();
      await observer.end();
    },
  };
}

const errorOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );

test.each([
  ['directly', ''],
  // The ids of backends are unknown then.
  ['through PgBouncer', '?pgbouncer=true'],
])('%s, commits that wait for a standby keep their places in the pool', async (_, more) => {
  await using set = await openWithoutStandby(more);
  let most = 0;
  const errors: unknown[] = [];
  for (let round = 0; round < 10; round += 1) {
    // As many at once as a server admits.
    const writes = Array.from({ length: POOL - SPARED }, (__, index) =>
      errorOf(set.write(round * 10 + index)),
    );
    errors.push(...(await Promise.all(writes)));
    most = Math.max(most, (await set.backends()).all);
    await set.read();
  }
  expect(errors.map(isUnavailable)).toEqual(Array(40).fill(true));
  // One more asks about the others.
  expect(most).toBeLessThanOrEqual(POOL + 1);
  const { hung } = await set.backends();
  expect(hung).toBeGreaterThanOrEqual(POOL - SPARED);
  expect(set.database.connections?.()).toMatchObject({ most: POOL, hung });
  // Refused at once: it would hang as well.
  const refused = await errorOf(set.write(100));
  expect((refused as Error).message).toContain(
    `no connection is left for changes: ${hung} wait for PostgreSQL`,
  );
  // No commit was given up: it would be visible without being replicated.
  expect(await set.rows()).toEqual([]);

  await set.standbyReturns();
  await expect.poll(() => set.database.connections?.().hung).toBe(0);
  expect(await set.rows()).toHaveLength(hung);
  await Promise.all(Array.from({ length: POOL }, (__, index) => set.write(200 + index)));
});

test('a database closes while commits hang', async () => {
  const set = await openWithoutStandby();
  expect(isUnavailable(await errorOf(set.write(1)))).toBe(true);
  await expect.poll(() => set.database.connections?.().hung).toBe(1);
  const closed = set.database.close().then(() => true);
  expect(await Promise.race([closed, pause(20_000, false, { ref: false })])).toBe(true);
  await set.standbyReturns();
  await set.forget();
});
