import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { Kysely } from 'kysely';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { isUnavailable } from '../../../src/errors.ts';
import { createCommitSync, type SyncCalls } from '../../../src/storage/sqlite/commit-sync.ts';
import { slotOf, sqliteDialect } from '../../../src/storage/sqlite/sqlite-dialect.ts';

interface Notes {
  notes: { id: string };
}

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'custos-sync-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** A disk whose syncs end when the test lets them. */
function slowDisk() {
  const syncs: { end(): void; fail(error: Error): void }[] = [];
  const calls: SyncCalls = {
    open: async () => 7,
    sync: () =>
      new Promise((resolve, reject) => {
        syncs.push({ end: resolve, fail: reject });
      }),
    close: async () => {},
  };
  /** The sync with this number, from 0, when it has begun. */
  const begun = (index: number) => vi.waitUntil(() => syncs[index], { interval: 1 });
  return { calls, syncs, begun };
}

function openNotes(calls: SyncCalls, limitMs?: number) {
  const handle = new Sqlite(join(folder, 'notes.sqlite'));
  handle.pragma('journal_mode = WAL');
  handle.exec('create table notes (id text primary key)');
  const slot = slotOf(handle, { sync: createCommitSync(join(folder, 'notes.sqlite-wal'), calls, limitMs) });
  const database = new Kysely<Notes>({ dialect: sqliteDialect(slot) });
  const insert = (id: string) =>
    database.transaction().execute((transaction) => transaction.insertInto('notes').values({ id }).execute());
  return { handle, database, insert };
}

/** Whether a promise has ended, after everything that can happen without the disk. */
async function hasEnded(promise: Promise<unknown>): Promise<boolean> {
  let ended = false;
  promise.then(
    () => (ended = true),
    () => (ended = true),
  );
  await new Promise((resolve) => setTimeout(resolve, 5));
  return ended;
}

test('a commit is acknowledged by a sync that began after it; those that wait share one', async () => {
  const { calls, syncs, begun } = slowDisk();
  const { insert, handle } = openNotes(calls);
  const first = insert('first');
  expect(await hasEnded(first)).toBe(false);
  const others = Promise.all(['a', 'b', 'c'].map(insert));
  expect(await hasEnded(others)).toBe(false);
  expect(handle.prepare('select count(*) as count from notes').get()).toEqual({ count: 4 });
  expect(syncs).toHaveLength(1);
  (await begun(0)).end();
  await first;
  expect(await hasEnded(others)).toBe(false);
  expect(syncs).toHaveLength(2);
  const last = insert('last');
  expect(await hasEnded(last)).toBe(false);
  (await begun(1)).end();
  await others;
  expect(await hasEnded(last)).toBe(false);
  (await begun(2)).end();
  await last;
});

test('what is read outside a transaction is on the disk; a transaction reads and goes on', async () => {
  const { calls, syncs, begun } = slowDisk();
  const { insert, database } = openNotes(calls);
  const written = insert('first');
  expect(await hasEnded(written)).toBe(false);
  const read = database.selectFrom('notes').selectAll().execute();
  expect(await hasEnded(read)).toBe(false);
  const within = database
    .transaction()
    .execute((transaction) => transaction.selectFrom('notes').selectAll().execute());
  expect(await within).toEqual([{ id: 'first' }]);
  (await begun(0)).end();
  expect(await read).toEqual([{ id: 'first' }]);
  await written;
  expect(await database.selectFrom('notes').selectAll().execute()).toHaveLength(1);
  expect(syncs).toHaveLength(1);
});

test('changes without a transaction are synced too; a rollback is not', async () => {
  const { calls, syncs, begun } = slowDisk();
  const { database } = openNotes(calls);
  const rolledBack = database.transaction().execute(async (transaction) => {
    await transaction.insertInto('notes').values({ id: 'never' }).execute();
    throw new Error('no');
  });
  await expect(rolledBack).rejects.toThrow('no');
  expect(syncs).toHaveLength(0);
  const written = database.insertInto('notes').values({ id: 'first' }).returning('id').execute();
  expect(await hasEnded(written)).toBe(false);
  (await begun(0)).end();
  await written;
});

test('after a failed sync no change is acknowledged, because the disk may have dropped it', async () => {
  const { calls, syncs, begun } = slowDisk();
  const { insert } = openNotes(calls);
  const refusal = insert('first').catch((error: unknown) => error);
  expect(await hasEnded(refusal)).toBe(false);
  (await begun(0)).fail(Object.assign(new Error('input/output error'), { code: 'EIO' }));
  expect(isUnavailable(await refusal)).toBe(true);
  expect(isUnavailable(await insert('second').catch((error: unknown) => error))).toBe(true);
  expect(syncs).toHaveLength(1);
});

test('a disk that does not answer holds no request for longer than the limit', async () => {
  const { calls, syncs, begun } = slowDisk();
  const { insert, database } = openNotes(calls, 200);
  const first = insert('first').catch((error: unknown) => error);
  await begun(0);
  const second = insert('second').catch((error: unknown) => error);
  expect((await Promise.all([first, second])).map(isUnavailable)).toEqual([true, true]);
  expect(await database.selectFrom('notes').selectAll().execute()).toHaveLength(2);
  expect(syncs).toHaveLength(1);
  (await begun(0)).end();
  (await begun(1)).end();
  const third = insert('third');
  expect(await hasEnded(third)).toBe(false);
  (await begun(2)).end();
  await third;
});
