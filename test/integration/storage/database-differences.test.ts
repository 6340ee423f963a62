import { setTimeout as sleep } from 'node:timers/promises';
import type { SqlEntityManager } from '@mikro-orm/sql';
import fc from 'fast-check';
import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { prepareQuery } from '../../../src/domain/prepared-query.ts';
import type { Tables } from '../../../src/domain/tables.ts';
import { lockName, lockNames, tryLockName } from '../../../src/storage/locks.ts';
import { resetDatabase } from '../../../src/storage/open-database.ts';
import { prepareInsertPair } from '../../../src/storage/prepared-statements.ts';
import { exactSum } from '../../../src/storage/sql-functions.ts';
import { databaseKinds, openTestDatabase, type TestDatabase } from '../../support/databases.ts';
import { recordStatements } from '../plans.ts';

// The functions that hide the differences between the databases from domain verbs.

const MAX_UINT256 = 2n ** 256n - 1n;

const selectSum = prepareQuery<{ group: string }, { sum: string }>((database, { group }) =>
  database
    .selectFrom('aggregation_records')
    .where('group_key', '=', group)
    .select(exactSum(database, 'amount').as('sum')),
);

const app = { id: 'acme', name: 'Acme', secret_hashes: '[]', settings: '{}', created_at_ms: 2 ** 41 };
const key = {
  wallet_id: 'w',
  sealed_secret: Buffer.from([0, 1, 255]),
  wrapped_data_key: Buffer.alloc(0),
  master_key_id: 'm',
  entropy_type: 'hd',
  derivation_path: null,
  wallet_index: 7,
  authority: null,
};

const insertAppAndKey = prepareInsertPair<typeof app, typeof key>({
  first: { table: 'apps', columns: ['id', 'name', 'secret_hashes', 'settings', 'created_at_ms'] },
  second: {
    table: 'wallet_keys',
    types: {
      wallet_id: 'text',
      sealed_secret: 'bytea',
      wrapped_data_key: 'bytea',
      master_key_id: 'text',
      entropy_type: 'text',
      derivation_path: 'text',
      wallet_index: 'integer',
      authority: 'text',
    },
  },
});

describe.each(databaseKinds)('%s', (kind) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await openTestDatabase(kind);
  });
  afterAll(() => database.close());
  beforeEach(() => resetDatabase(database));

  const fork = () => database.orm.em.fork();
  const within = <T>(work: (em: SqlEntityManager) => Promise<T>): Promise<T> =>
    fork().transactional((em) => work(em as SqlEntityManager));
  const touch = (em: SqlEntityManager) => em.execute('select 1');

  describe('names', () => {
    /** A transaction that holds the locks of `lock` until `end` is called. */
    async function hold(lock: (em: SqlEntityManager) => Promise<unknown>) {
      const [held, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const done = within(async (em) => {
        await lock(em);
        await touch(em);
        held.resolve();
        await ended.promise;
      });
      await held.promise;
      return {
        end: () => {
          ended.resolve();
          return done;
        },
      };
    }

    test('a transaction waits for a locked name until the holder’s transaction ends', async () => {
      const holder = await hold((em) => lockName(em, 'nonces', 'n'));
      let isIn = false;
      const waiting = within(async (em) => {
        await lockName(em, 'nonces', 'n');
        await touch(em);
        isIn = true;
      });
      await sleep(100);
      expect(isIn).toBe(false);
      await holder.end();
      await waiting;
      expect(isIn).toBe(true);
    });

    test('lockNames locks each of the names', async () => {
      const holder = await hold((em) => lockNames(em, 'nonces', ['c', 'a', 'b', 'a']));
      const entered: string[] = [];
      const waiting = ['a', 'b', 'c'].map((name) =>
        within(async (em) => {
          await lockName(em, 'nonces', name);
          await touch(em);
          entered.push(name);
        }),
      );
      await sleep(100);
      expect(entered).toEqual([]);
      await holder.end();
      await Promise.all(waiting);
      expect(entered.sort()).toEqual(['a', 'b', 'c']);
    });

    test('transactions that lock the same names in different orders do not deadlock', async () => {
      const names = Array.from({ length: 50 }, (_, index) => `name ${index}`);
      const all = Array.from({ length: 12 }, (_, index) =>
        within(async (em) => {
          await lockNames(em, 'nonces', index % 2 === 0 ? names : names.toReversed());
          await touch(em);
        }),
      );
      await Promise.all(all);
    });

    test('an empty list locks nothing', async () => {
      await within((em) => lockNames(em, 'nonces', []));
    });

    test('a free name is locked immediately, also again by the same transaction', async () => {
      const locked = await within(async (em) => [
        await tryLockName(em, 'nonces', 'n'),
        await tryLockName(em, 'nonces', 'n'),
      ]);
      expect(locked).toEqual([true, true]);
      expect(await within((em) => tryLockName(em, 'nonces', 'n'))).toBe(true);
    });

    test.runIf(kind === 'postgres')(
      'a name that another transaction holds is refused without waiting',
      async () => {
        const holder = await hold((em) => tryLockName(em, 'nonces', 'n'));
        expect(await within((em) => tryLockName(em, 'nonces', 'n'))).toBe(false);
        expect(await within((em) => tryLockName(em, 'nonces', 'other'))).toBe(true);
        await holder.end();
        expect(await within((em) => tryLockName(em, 'nonces', 'n'))).toBe(true);
      },
    );
  });

  test('sums are exact at any size, and 0 without rows', async () => {
    const amounts = fc.array(fc.bigInt({ min: -MAX_UINT256, max: MAX_UINT256 }), { maxLength: 20 });
    let group = 0;
    await fc.assert(
      fc.asyncProperty(amounts, async (values) => {
        group += 1;
        const em = fork();
        const rows = values.map((amount, index) => ({
          id: `${group} ${index}`,
          aggregation_id: 'a',
          group_key: String(group),
          amount: String(amount),
          recorded_at_ms: index,
        }));
        if (rows.length > 0) {
          await em.getKysely<Tables>().insertInto('aggregation_records').values(rows).execute();
        }
        const sum = values.reduce((total, amount) => total + amount, 0n);
        expect((await selectSum(em, { group: String(group) })).rows).toEqual([{ sum: String(sum) }]);
      }),
      { numRuns: 50 },
    );
  });

  describe('two rows that belong together', () => {
    const countOf = async (table: string) => {
      const { rows } = await sql<{
        count: number;
      }>`select count(*) as count from ${sql.table(table)}`.execute(fork().getKysely());
      return Number(rows[0]?.count);
    };

    test('two rows that belong together are both inserted', async () => {
      expect(await insertAppAndKey(fork(), app, key)).toBe(true);
      const kysely = fork().getKysely<Tables>();
      expect(await kysely.selectFrom('apps').selectAll().execute()).toMatchObject([app]);
      expect(await kysely.selectFrom('wallet_keys').selectAll().execute()).toEqual([key]);
    });

    test('two rows that belong together are both skipped when a unique index refuses the first', async () => {
      await insertAppAndKey(fork(), app, key);
      expect(await insertAppAndKey(fork(), app, { ...key, wallet_id: 'another' })).toBe(false);
      expect(await countOf('wallet_keys')).toBe(1);
    });

    test('two rows that belong together fail when a unique index refuses the second', async () => {
      await insertAppAndKey(fork(), app, key);
      const again = within((em) => insertAppAndKey(em, { ...app, id: 'another' }, key));
      await expect(again).rejects.toThrow(/unique/i);
      expect(await countOf('apps')).toBe(1);
    });

    test.runIf(kind === 'postgres')('two rows that belong together take one round trip', async () => {
      const statements = await recordStatements(fork().getKysely<Tables>(), () =>
        insertAppAndKey(fork(), app, key),
      );
      expect(statements).toHaveLength(1);
    });
  });
});
