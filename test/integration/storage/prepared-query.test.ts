import type { SqlEntityManager } from '@mikro-orm/sql';
import { describe, expect, test } from 'vitest';
import { prepareQuery } from '../../../src/domain/prepared-query.ts';
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
});
