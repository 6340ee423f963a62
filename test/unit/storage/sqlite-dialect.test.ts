import Sqlite from 'better-sqlite3';
import { Kysely, sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import { slotOf, sqliteDialect } from '../../../src/storage/sqlite/sqlite-dialect.ts';

interface Notes {
  notes: { id: string };
}

function openNotes() {
  const handle = new Sqlite(':memory:');
  handle.exec('create table notes (id text primary key)');
  const database = new Kysely<Notes>({ dialect: sqliteDialect(slotOf(handle)) });
  const insert = (db: Kysely<Notes>, id: string) => db.insertInto('notes').values({ id }).execute();
  const ids = async (db: Kysely<Notes> = database) =>
    (await db.selectFrom('notes').select('id').orderBy('id').execute()).map((row) => row.id);
  return { handle, database, insert, ids };
}

describe('transactions', () => {
  test('transactions begin with their first statement, so that earlier work does not block others', async () => {
    const { handle, database, insert, ids } = openNotes();
    const slow = await database.startTransaction().execute();
    expect(handle.inTransaction).toBe(false);
    const quick = await database.startTransaction().execute();
    await insert(quick, 'quick');
    await quick.commit().execute();
    await insert(slow, 'slow');
    expect(handle.inTransaction).toBe(true);
    await slow.rollback().execute();
    expect(await ids()).toEqual(['quick']);
  });

  test('run in the order of their first statements; reads wait as well and see committed data', async () => {
    const { database, insert, ids } = openNotes();
    const [first, second] = await Promise.all([
      database.startTransaction().execute(),
      database.startTransaction().execute(),
    ]);
    await insert(first, 'a');
    const waiting = insert(second, 'b').then(() => second.commit().execute());
    const read = ids();
    await insert(first, 'c');
    await first.commit().execute();
    await waiting;
    expect(await read).toEqual(['a', 'b', 'c']);
  });

  test('concurrent statements of one transaction all belong to it', async () => {
    const { database, insert, ids } = openNotes();
    const transaction = await database.startTransaction().execute();
    await Promise.all(['a', 'b', 'c'].map((id) => insert(transaction, id)));
    await transaction.rollback().execute();
    expect(await ids()).toEqual([]);
  });

  test('transactions that never used the database end without effect', async () => {
    const { handle, database, ids } = openNotes();
    await (await database.startTransaction().execute()).commit().execute();
    await (await database.startTransaction().execute()).rollback().execute();
    expect(handle.inTransaction).toBe(false);
    expect(await ids()).toEqual([]);
  });

  test('continue after a failed statement, and a savepoint rolls back only its part', async () => {
    const { database, insert, ids } = openNotes();
    const transaction = await database.startTransaction().execute();
    await insert(transaction, 'a');
    await expect(insert(transaction, 'a')).rejects.toThrow(/UNIQUE/);
    const nested = await transaction.savepoint('part').execute();
    await insert(nested, 'b');
    const outer = await nested.rollbackToSavepoint('part').execute();
    await insert(outer, 'c');
    await outer.commit().execute();
    expect(await ids()).toEqual(['a', 'c']);
  });

  test('admit the next one when their commit fails, and change nothing', async () => {
    const { handle, database, insert, ids } = openNotes();
    handle.pragma('foreign_keys = ON');
    handle.exec('create table marks (note text references notes (id) deferrable initially deferred)');
    const transaction = await database.startTransaction().execute();
    await insert(transaction, 'a');
    await sql`insert into marks values ('nothing')`.execute(transaction);
    await expect(transaction.commit().execute()).rejects.toThrow(/FOREIGN KEY/);
    await insert(database, 'b');
    expect(await ids()).toEqual(['b']);
  });
});

test('a statement is prepared once', async () => {
  const { handle, insert, database } = openNotes();
  let prepared = 0;
  const prepare = handle.prepare.bind(handle);
  handle.prepare = ((text: string) => {
    prepared += 1;
    return prepare(text);
  }) as typeof handle.prepare;
  for (let index = 0; index < 20; index += 1) await insert(database, `n${index}`);
  expect(prepared).toBe(1);
});

test('more statements than the cache holds still run', async () => {
  const { database } = openNotes();
  for (let index = 0; index < 600; index += 1) {
    const { rows } = await sql<{ value: number }>`select ${sql.lit(index)} as value`.execute(database);
    expect(rows).toEqual([{ value: index }]);
  }
});

describe('row locks are omitted from a query', () => {
  const { database } = openNotes();
  const notes = database.selectFrom('notes').select('id').where('id', '=', 'a').orderBy('id').limit(1);
  const plain = 'select "id" from "notes" where "id" = ? order by "id" limit ?';

  test.each([
    ['for update', notes.forUpdate()],
    ['for update of a table', notes.forUpdate('notes')],
    ['for update skip locked', notes.forUpdate().skipLocked()],
    ['for update nowait', notes.forUpdate().noWait()],
    ['for no key update', notes.forNoKeyUpdate()],
    ['for share', notes.forShare()],
    ['for key share', notes.forKeyShare()],
  ])('row locks are omitted from a query: %s', async (_, query) => {
    expect(query.compile().sql).toBe(plain);
    expect(await query.execute()).toEqual([]);
  });

  test('row locks are omitted from subqueries', async () => {
    const update = database
      .updateTable('notes')
      .set({ id: 'b' })
      .where('id', 'in', notes.forUpdate().skipLocked())
      .returning('id');
    expect(update.compile().sql).toBe(`update "notes" set "id" = ? where "id" in (${plain}) returning "id"`);
    expect(await update.execute()).toEqual([]);
  });

  test('only row locks are omitted from a query', () => {
    const query = notes.distinct().modifyEnd(sql`-- end`).forUpdate();
    expect(query.compile().sql).toBe(`${plain.replace('select', 'select distinct')} -- end`);
  });
});

test('a limit does not make SQLite plan a prepared statement again', async () => {
  const handle = new Sqlite(':memory:');
  const columns = Array.from({ length: 40 }, (_, index) => `column_${index}`);
  handle.exec(`create table wide (id text primary key, ${columns.join(', ')})`);
  for (const column of columns) handle.exec(`create index by_${column} on wide (${column}, id)`);
  handle.exec("insert into wide (id) values ('a')");
  const database = new Kysely<{ wide: { id: string } }>({ dialect: sqliteDialect(slotOf(handle)) });
  const whole = database.selectFrom('wide').selectAll().where('id', '=', 'a');
  const [rows, limited] = [await whole.execute(), await whole.limit(1).execute()];
  expect(limited).toEqual(rows);
  const least = async (query: typeof whole): Promise<number> => {
    const compiled = query.compile();
    const took: number[] = [];
    for (let round = 0; round < 20; round += 1) {
      const beganMs = performance.now();
      for (let left = 100; left > 0; left -= 1) await database.executeQuery(compiled);
      took.push(performance.now() - beganMs);
    }
    return Math.min(...took);
  };
  await least(whole);
  // Planning takes six times as long as the rest.
  expect((await least(whole.limit(1))) / (await least(whole))).toBeLessThan(2.5);
});
