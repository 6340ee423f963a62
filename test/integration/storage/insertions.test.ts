import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import { prepareQuery } from '../../../src/domain/prepared-query.ts';
import { inUnitOf, unitsOf } from '../../../src/server/unit-of-work.ts';
import {
  insertedId,
  insertionOfMany,
  insertionWithId,
  standApart,
} from '../../../src/storage/prepared-statements.ts';
import { databaseKinds, openTestDatabase } from '../../support/databases.ts';

const insertPending = prepareQuery<{ entry: string }, { id: number }>((database, { entry }) =>
  insertionWithId(
    database,
    database.insertInto('audit_pending').values({ app_id: null, origin: null, recorded_at_ms: 1, entry }),
  ),
);

const selectPending = prepareQuery<{ entry: string }, { id: number | string }>((database, { entry }) =>
  database.selectFrom('audit_pending').select('id').where('entry', '=', entry),
);

const insertApps = prepareQuery<{ first: string; second: string }>((database, { first, second }) =>
  insertionOfMany(
    database,
    database
      .insertInto('apps')
      .values([first, second].map((id) => ({ id, name: id, secret_hashes: '[]', created_at_ms: 1 }))),
  ),
);

test('a transaction that fills the disk of SQLite, and stands apart, takes no other one with it', async () => {
  await using database = await openTestDatabase('sqlite');
  const inUnit = inUnitOf(unitsOf(database));
  const [before, filling, after] = await Promise.allSettled([
    inUnit((em) => insertPending(em, { entry: 'before' })),
    inUnit(async (em) => {
      standApart(em);
      await sql`pragma max_page_count = 1`.execute(em.getKysely());
      const large = 'x'.repeat(9_000_000);
      try {
        await insertApps(em, { first: large, second: `${large}y` });
      } finally {
        await sql`pragma max_page_count = 1000000`.execute(em.getKysely()).catch(() => undefined);
      }
    }),
    inUnit((em) => insertPending(em, { entry: 'after' })),
  ]);
  expect([before.status, filling.status, after.status]).toEqual(['fulfilled', 'rejected', 'fulfilled']);
});

describe.each(databaseKinds)('%s', (kind) => {
  test('the number of an inserted row is known, whether the row ends its transaction or not', async () => {
    await using database = await openTestDatabase(kind);
    const unit = await unitsOf(database)(true);
    const first = insertedId(await insertPending(unit.em, { entry: 'first' }));
    const second = insertedId(await insertPending(unit.em, { entry: 'second' }, { commits: true }));
    await unit.commit();
    const idOf = async (entry: string) =>
      Number((await selectPending(database.orm.em.fork(), { entry })).rows[0]?.id);
    expect([first, second]).toEqual([await idOf('first'), await idOf('second')]);
    expect(second).toBeGreaterThan(first);
  });

  test('of an insertion of many of which one is refused, the transaction keeps none', async () => {
    await using database = await openTestDatabase(kind);
    const inUnit = inUnitOf(unitsOf(database));
    await inUnit((em) => insertApps(em, { first: 'a', second: 'b' }));
    // Another transaction waits for the same commit.
    const [together, refused] = await Promise.allSettled([
      inUnit((em) => insertApps(em, { first: 'c', second: 'd' })),
      inUnit((em) => insertApps(em, { first: 'e', second: 'a' })),
    ]);
    expect([together.status, refused.status]).toEqual(['fulfilled', 'rejected']);
    const apps = await database.orm.em
      .fork()
      .getKysely<{ apps: { id: string } }>()
      .selectFrom('apps')
      .select('id')
      .execute();
    expect(apps.map(({ id }) => id).sort()).toEqual(['a', 'b', 'c', 'd']);
  });
});
