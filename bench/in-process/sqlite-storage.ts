import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Database as Handle } from 'better-sqlite3';
import { entities } from '../../src/domain/tables.ts';
import { openDatabase } from '../../src/storage/open-database.ts';
import { type CommitSync, createCommitSync } from '../../src/storage/sqlite/commit-sync.ts';
import { credentials } from '../servers/credentials.ts';
import { openSandboxFile } from '../servers/handlers/stored-work.ts';
import { temporaryFolder } from '../servers/launch.ts';
import { measureOperations, operationsOf, reportProgress } from './storage-rounds.ts';
import {
  entityManagerOn,
  eventValues,
  idOf,
  keyValues,
  oursOn,
  PAGE,
  plainStatements,
  requirePage,
  type StorageSubject,
  walletValues,
} from './storage-subject.ts';

// Storage on SQLite: our verbs on the ORM's connection, and the same rows with prepared statements.

/**
 * @param sync makes a commit survive a power loss as ours does, in another thread. Without it SQLite syncs by itself
 * and blocks the event loop.
 */
function rawOn(handle: Handle, sync?: CommitSync): StorageSubject {
  if (sync !== undefined) handle.pragma('synchronous = NORMAL');
  const insertWallet = handle.prepare(plainStatements.wallet);
  const insertKey = handle.prepare(plainStatements.key);
  const insertEvent = handle.prepare(plainStatements.event);
  const select = handle.prepare(plainStatements.get);
  const selectCursor = handle.prepare(plainStatements.cursor);
  const selectPage = handle.prepare(plainStatements.page);
  const insertAll = handle.transaction((id: string) => {
    insertWallet.run(walletValues(id));
    insertKey.run(keyValues(id));
    insertEvent.run(eventValues(id));
  });
  return {
    create(id) {
      insertAll.immediate(id);
      return sync?.flushed();
    },
    get(id) {
      if (select.get(credentials.appId, id) === undefined) throw new Error(`${id} is not there`);
    },
    page(id) {
      const { created_at_ms: atMs } = selectCursor.get(id, credentials.appId) as { created_at_ms: number };
      requirePage(selectPage.all(credentials.appId, atMs, id, PAGE + 1).slice(0, PAGE).length);
    },
  };
}

function seed(handle: Handle, rows: number): void {
  const insertWallet = handle.prepare(plainStatements.wallet);
  const insertKey = handle.prepare(plainStatements.key);
  handle.transaction(() => {
    for (let number = 0; number < rows; number += 1) {
      insertWallet.run(walletValues(idOf(number)));
      insertKey.run(keyValues(idOf(number)));
    }
  })();
}

/** A new file with `rows` wallets. */
function seededFile(rows: number): string {
  reportProgress(`seeding ${rows} wallets`);
  const file = join(temporaryFolder(), 'storage.sqlite');
  const handle = openSandboxFile(file);
  seed(handle, rows);
  handle.close();
  return file;
}

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    rows: { type: 'string', default: '5000' },
  },
});
const counts = { create: 1000, get: 5000, page: 500 };

async function compareWithRaw(rows: number) {
  const database = await openDatabase(entities, { kind: 'sqlite', file: seededFile(rows) });
  const managed = await openDatabase(entities, { kind: 'sqlite', file: seededFile(rows) });
  const handle = openSandboxFile(seededFile(rows));
  const file = seededFile(rows);
  const synced = openSandboxFile(file);
  const sync = createCommitSync(`${file}-wal`);
  const subjects = {
    raw: rawOn(handle),
    'raw, synced in a thread': rawOn(synced, sync),
    ours: oursOn(database),
    'entity manager': entityManagerOn(managed),
  };
  const operations = Object.entries(subjects).flatMap((each) => operationsOf(...each, rows, counts));
  const measured = await measureOperations(Number(values.rounds), 1, operations);
  await Promise.all([database.close(), managed.close(), sync.close()]);
  handle.close();
  synced.close();
  return measured;
}

process.send?.(await compareWithRaw(Number(values.rows)));
process.disconnect?.();
