import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import Sqlite from 'better-sqlite3';
import { Kysely, sql } from 'kysely';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { slotOf, sqliteDialect } from '../../../src/storage/sqlite/sqlite-dialect.ts';
import { openNotes } from './notes-file.ts';

let file: string;
beforeEach(() => {
  file = join(mkdtempSync(join(tmpdir(), 'custos-reads-')), 'notes.sqlite');
});
afterEach(() => rmSync(join(file, '..'), { recursive: true, force: true }));

/** Another process. */
function otherWriter() {
  const handle = new Sqlite(file);
  handle.pragma('busy_timeout = 0');
  const insert = handle.prepare('insert into notes values (?)');
  return { handle, write: (id: string) => insert.run(id) };
}

test('reads of one turn of the event loop share a transaction, which ends with the turn', async () => {
  const { database, idsIn, commands, handle } = openNotes(file);
  await Promise.all([idsIn(database), idsIn(database), idsIn(database)]);
  expect(commands).toEqual(['begin']);
  expect(handle.inTransaction).toBe(true);
  await nextTurn();
  expect(commands).toEqual(['begin', 'rollback']);
  await idsIn(database);
  await nextTurn();
  expect(commands).toEqual(['begin', 'rollback']);
});

test('reads of one turn see the same state, and those of later turns what others have committed', async () => {
  const { database, idsIn } = openNotes(file);
  const { write } = otherWriter();
  write('a');
  expect(await idsIn(database)).toEqual(['a']);
  expect(await idsIn(database)).toEqual(['a']);
  write('b');
  expect(await idsIn(database)).toEqual(['a']);
  await nextTurn();
  expect(await idsIn(database)).toEqual(['a', 'b']);
});

test('a change of this handle is committed at once, and found by the reads that follow in the turn', async () => {
  const { database, idsIn, insert, write, committed } = openNotes(file);
  await Promise.all([idsIn(database), idsIn(database)]);
  await insert(database, 'a');
  expect(committed()).toEqual(['a']);
  expect(await idsIn(database)).toEqual(['a']);
  expect(await idsIn(database)).toEqual(['a']);
  await write('b');
  expect(committed()).toEqual(['a', 'b']);
  expect(await idsIn(database)).toEqual(['a', 'b']);
});

test('commands that SQLite refuses in a transaction follow reads of the same turn', async () => {
  const { database, idsIn } = openNotes(file);
  await Promise.all([idsIn(database), idsIn(database)]);
  await sql`vacuum`.execute(database);
  await Promise.all([idsIn(database), idsIn(database)]);
  const { rows } = await sql<{ busy: number }>`pragma wal_checkpoint(truncate)`.execute(database);
  expect(rows).toMatchObject([{ busy: 0 }]);
});

test('reads do not keep others from writing or, after their turn, from emptying the log', async () => {
  const { database, idsIn } = openNotes(file);
  await Promise.all([idsIn(database), idsIn(database)]);
  const { handle, write } = otherWriter();
  write('a');
  await nextTurn();
  expect(handle.pragma('wal_checkpoint(truncate)')).toMatchObject([{ busy: 0 }]);
});

test('a read that fails does not affect the others of its turn', async () => {
  const { database, idsIn } = openNotes(file);
  const failing = sql`select abs(-9223372036854775808)`
    .execute(database)
    .catch((error: Error) => error.message);
  const [first, message, second] = await Promise.all([idsIn(database), failing, idsIn(database)]);
  expect(message).toMatch(/overflow/);
  expect([first, second]).toEqual([[], []]);
  await nextTurn();
  expect(await idsIn(database)).toEqual([]);
});

test('after reads whose transaction cannot be ended, nothing old is read, and the process goes on', async () => {
  let isFailing = true;
  const { database, idsIn, write } = openNotes(file, {
    fault: (command) => {
      if (command === 'rollback' && isFailing) throw new Error('disk I/O error');
    },
  });
  await Promise.all([idsIn(database), idsIn(database)]);
  await nextTurn();
  await expect(idsIn(database)).rejects.toThrow('cannot be ended');
  await expect(write('a')).rejects.toThrow(/within a transaction/);
  isFailing = false;
  await write('b');
  expect(await idsIn(database)).toEqual(['b']);
});

test('after reads whose transaction cannot be ended, a change is refused instead of being lost with it', async () => {
  let isFailing = true;
  const { database, idsIn, insert, committed } = openNotes(file, {
    fault: (command) => {
      if (command === 'rollback' && isFailing) throw new Error('disk I/O error');
    },
  });
  await Promise.all([idsIn(database), idsIn(database)]);
  await expect(insert(database, 'a')).rejects.toThrow('cannot be ended');
  isFailing = false;
  await insert(database, 'b');
  expect(committed()).toEqual(['b']);
});

test('reads of a database in memory need no transaction', async () => {
  const handle = new Sqlite(':memory:');
  const database = new Kysely<never>({ dialect: sqliteDialect(slotOf(handle)) });
  await Promise.all([sql`select 1`.execute(database), sql`select 2`.execute(database)]);
  expect(handle.inTransaction).toBe(false);
});
