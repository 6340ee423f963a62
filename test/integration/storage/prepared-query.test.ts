import type { SqlEntityManager } from '@mikro-orm/sql';
import { describe, expect, test } from 'vitest';
import { AppEntity } from '../../../src/domain/access/apps/app.entity.ts';
import { prepareQuery } from '../../../src/domain/prepared-query.ts';
import { unitsOf } from '../../../src/server/unit-of-work.ts';
import { holdsConnection } from '../../../src/storage/own-kysely.ts';
import { databaseKinds, openTestDatabase } from '../../support/databases.ts';

let built = 0;

/** Contains both kinds of values: constants of the query, and values of each run. */
const insertApp = prepareQuery<{ id: string; createdAtMs: number; name: string }>((database, input) => {
  built += 1;
  return database.insertInto('apps').values({
    id: input.id,
    name: input.name,
    secret_hashes: '[]',
    created_at_ms: input.createdAtMs,
  });
});

const selectApps = prepareQuery<{ name: string; limit: number }, { id: string }>(
  (database, { name, limit }) =>
    database
      .selectFrom('apps')
      .select('id')
      .where('name', '=', name)
      .orderBy('created_at_ms', 'desc')
      .limit(limit),
);

describe.each(databaseKinds)('%s', (kind) => {
  test('a prepared query is built once and uses the values of each run', async () => {
    await using database = await openTestDatabase(kind);
    const em = database.orm.em.fork();
    const builtBefore = built;
    for (const [index, name] of ['Acme', 'Globex', 'Acme', 'Acme'].entries()) {
      const { numAffectedRows } = await insertApp(em, { id: `app-${index}`, createdAtMs: index, name });
      expect(numAffectedRows).toBe(1n);
    }
    expect(built - builtBefore).toBe(1);
    const idsOf = async (name: string, limit: number) =>
      (await selectApps(em, { name, limit })).rows.map(({ id }) => id);
    expect(await idsOf('Acme', 2)).toEqual(['app-3', 'app-2']);
    expect(await idsOf('Acme', 9)).toEqual(['app-3', 'app-2', 'app-0']);
    expect(await idsOf('Globex', 9)).toEqual(['app-1']);
    expect(await idsOf('Unknown', 9)).toEqual([]);
  });

  test('it takes part in the transaction of its entity manager', async () => {
    await using database = await openTestDatabase(kind);
    const undone = database.orm.em.fork().transactional(async (em) => {
      await insertApp(em as SqlEntityManager, { id: 'a', createdAtMs: 1, name: 'Acme' });
      throw new Error('undo');
    });
    await expect(undone).rejects.toThrow('undo');
    expect((await selectApps(database.orm.em.fork(), { name: 'Acme', limit: 9 })).rows).toEqual([]);
  });

  describe('the last statement of a unit of work', () => {
    const app = (id: string) => ({ id, createdAtMs: 1, name: 'Acme' });

    test('needs no transaction if nothing has begun one: it is committed when it returns', async () => {
      await using database = await openTestDatabase(kind);
      const names = async () => (await selectApps(database.orm.em.fork(), { name: 'Acme', limit: 9 })).rows;
      const unit = await unitsOf(database)(true);
      // On SQLite a read begins the transaction.
      if (kind === 'postgres') await selectApps(unit.em, { name: 'Acme', limit: 9 });
      await insertApp(unit.em, app('a'), { isLast: true });
      expect(holdsConnection(unit.em)).toBe(false);
      expect(await names()).toEqual([{ id: 'a' }]);
      await expect(insertApp(unit.em, app('b'))).rejects.toThrow('follows the last statement');
      await unit.rollback();
      expect(await names()).toEqual([{ id: 'a' }]);
    });

    test('the last statement of a unit of work is in the transaction that another statement has begun', async () => {
      await using database = await openTestDatabase(kind);
      const names = async () =>
        (await selectApps(database.orm.em.fork(), { name: 'Acme', limit: 9 })).rows
          .map(({ id }) => id)
          .sort();
      const undone = await unitsOf(database)(true);
      await insertApp(undone.em, app('a'));
      await insertApp(undone.em, app('b'), { isLast: true });
      await undone.rollback();
      expect(await names()).toEqual([]);
      const done = await unitsOf(database)(true);
      done.em.create(AppEntity, { id: 'a', name: 'Acme', secretHashes: [], settings: {}, createdAtMs: 1 });
      await done.commit(async ({ em }) => {
        await insertApp(em, app('b'), { isLast: true });
      });
      expect(await names()).toEqual(['a', 'b']);
    });

    test('the last statement of a unit of work that fails leaves nothing', async () => {
      await using database = await openTestDatabase(kind);
      await insertApp(database.orm.em.fork(), app('a'));
      const unit = await unitsOf(database)(true);
      await expect(insertApp(unit.em, app('a'), { isLast: true })).rejects.toThrow();
      await unit.rollback();
      await insertApp(database.orm.em.fork(), app('b'));
    });
  });
});
