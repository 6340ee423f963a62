import { sql } from 'kysely';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { prepareQuery } from '../../../src/domain/prepared-query.ts';
import { inSavepoint } from '../../../src/domain/savepoint.ts';
import { unitsOf } from '../../../src/server/unit-of-work.ts';
import { databaseKinds, openTestDatabase } from '../../support/databases.ts';
import { serverDriver } from '../../support/postgres/server-driver.ts';

const insertApp = prepareQuery<{ id: string; createdAtMs: number; name: string }>((database, input) =>
  database.insertInto('apps').values({
    id: input.id,
    name: input.name,
    secret_hashes: '[]',
    created_at_ms: input.createdAtMs,
  }),
);
const selectApps = prepareQuery<{ name: string }, { id: string }>((database, { name }) =>
  database.selectFrom('apps').select('id').where('name', '=', name).orderBy('id'),
);
const app = (id: string) => ({ id, createdAtMs: 1, name: 'Acme' });

type TestDatabase = Awaited<ReturnType<typeof openTestDatabase>>;

/** The ids of the apps that are committed. */
async function stored({ orm }: TestDatabase): Promise<string[]> {
  return (await selectApps(orm.em.fork(), { name: 'Acme' })).rows.map(({ id }) => id);
}

const isDeferred = { isDeferred: true } as const;

describe.each(databaseKinds)('%s', (kind) => {
  describe('a deferred statement', () => {
    test('a deferred statement is committed with its unit of work, and seen by the statements after it', async () => {
      await using database = await openTestDatabase(kind);
      const unit = await unitsOf(database)(true);
      await insertApp(unit.em, app('a'), isDeferred);
      expect((await selectApps(unit.em, { name: 'Acme' })).rows).toEqual([{ id: 'a' }]);
      await insertApp(unit.em, app('b'), isDeferred);
      await unit.commit();
      expect(await stored(database)).toEqual(['a', 'b']);
    });

    test('alone is committed too', async () => {
      await using database = await openTestDatabase(kind);
      const unit = await unitsOf(database)(true);
      await insertApp(unit.em, app('a'), isDeferred);
      await unit.commit();
      expect(await stored(database)).toEqual(['a']);
    });

    test('a deferred statement is rolled back with its unit of work', async () => {
      await using database = await openTestDatabase(kind);
      const unit = await unitsOf(database)(true);
      await insertApp(unit.em, app('a'), isDeferred);
      await unit.rollback();
      expect(await stored(database)).toEqual([]);
    });

    test('a deferred statement is rolled back with its savepoint, and the rest is committed', async () => {
      await using database = await openTestDatabase(kind);
      const unit = await unitsOf(database)(true);
      await insertApp(unit.em, app('a'), isDeferred);
      const refused = inSavepoint(unit, async (em) => {
        await insertApp(em, app('b'), isDeferred);
        throw new Error('refused');
      });
      await expect(refused).rejects.toThrow('refused');
      await inSavepoint(unit, (em) => insertApp(em, app('c'), isDeferred));
      await unit.commit();
      expect(await stored(database)).toEqual(['a', 'c']);
    });

    test('a deferred statement that fails leaves nothing of its unit of work', async () => {
      await using database = await openTestDatabase(kind);
      await insertApp(database.orm.em.fork(), app('b'));
      const unit = await unitsOf(database)(true);
      const work = async () => {
        await insertApp(unit.em, app('a'));
        await insertApp(unit.em, app('b'), isDeferred);
        await insertApp(unit.em, app('c'));
        await unit.commit();
      };
      await expect(work()).rejects.toMatchObject({
        code: kind === 'postgres' ? '23505' : 'SQLITE_CONSTRAINT_PRIMARYKEY',
      });
      await unit.rollback();
      expect(await stored(database)).toEqual(['b']);
    });
  });

  test('the last statement may commit its unit of work', async () => {
    await using database = await openTestDatabase(kind);
    const unit = await unitsOf(database)(true);
    await insertApp(unit.em, app('a'));
    await unit.commit(async ({ em }) => {
      await insertApp(em, app('b'), { commits: true });
    });
    expect(await stored(database)).toEqual(['a', 'b']);
  });

  test('values of every kind are stored and read as they are', async () => {
    await using database = await openTestDatabase(kind);
    const em = database.orm.em.fork();
    const kysely = em.getKysely() as never as import('kysely').Kysely<{ kinds: Record<string, unknown> }>;
    const bytes = kind === 'postgres' ? 'bytea' : 'blob';
    await em.execute(
      `create table kinds (id text primary key, whole bigint, small integer, real double precision, bytes ${bytes}, absent text, note text)`,
    );
    const row = {
      id: 'a',
      whole: 1_763_719_200_123,
      small: -7,
      real: 0.5,
      bytes: Uint8Array.of(0, 255, 39, 92),
      absent: null,
      note: 'ä\u{1f600}\'"\\\n',
    };
    await kysely.insertInto('kinds').values(row).execute();
    for (let time = 0; time < 3; time += 1) {
      const [found] = await kysely.selectFrom('kinds').selectAll().where('id', '=', 'a').execute();
      expect({ ...found, bytes: Uint8Array.from(found!.bytes as Uint8Array) }).toEqual(row);
    }
    const changed = await kysely.updateTable('kinds').set({ small: 8 }).where('whole', '>', 1).execute();
    expect(changed[0]!.numUpdatedRows).toBe(1n);
    const none = await kysely.deleteFrom('kinds').where('id', '=', 'b').execute();
    expect(none[0]!.numDeletedRows).toBe(0n);
  });
});

describe('postgres', () => {
  test('a unit of work that writes three rows takes two round trips', async () => {
    await using database = await openTestDatabase('postgres');
    const run = async (suffix: string) => {
      const unit = await unitsOf(database)(true);
      await insertApp(unit.em, app(`a${suffix}`));
      await insertApp(unit.em, app(`b${suffix}`), isDeferred);
      await unit.commit(async ({ em }) => {
        await insertApp(em, app(`c${suffix}`), { commits: true });
      });
    };
    await run('1');
    const sent = vi.spyOn(serverDriver.Client.prototype, 'query');
    onTestFinished(() => sent.mockRestore());
    await run('2');
    expect(sent).toHaveBeenCalledTimes(2);
    expect(await stored(database)).toEqual(['a1', 'a2', 'b1', 'b2', 'c1', 'c2']);
  });

  test('a commit after a failed statement is an error, although PostgreSQL accepts it', async () => {
    await using database = await openTestDatabase('postgres');
    const unit = await unitsOf(database)(true);
    await insertApp(unit.em, app('a'));
    await expect(insertApp(unit.em, app('a'))).rejects.toMatchObject({ code: '23505' });
    await expect(unit.commit()).rejects.toThrow('was rolled back');
    await unit.rollback();
    expect(await stored(database)).toEqual([]);
  });

  test('statements that fail can be sent again over the same connection', async () => {
    await using database = await openTestDatabase('postgres');
    const divide = prepareQuery<{ by: number }, { result: number }>((kysely, { by }) =>
      kysely.selectNoFrom(sql<number>`10 / cast(${by} as integer)`.as('result')),
    );
    const em = database.orm.em.fork();
    for (const by of [0, 2, 0, 5]) {
      if (by === 0) await expect(divide(em, { by })).rejects.toMatchObject({ code: '22012' });
      else expect((await divide(em, { by })).rows).toEqual([{ result: 10 / by }]);
    }
  });
});
