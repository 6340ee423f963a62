import { execFile } from 'node:child_process';
import fs, { mkdtempSync, rmSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import Sqlite from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { entities } from '../../../src/domain/tables.ts';
import { openDatabase } from '../../../src/storage/open-database.ts';
import { upgradeSqlite } from '../../../src/storage/sqlite/upgrade-sqlite.ts';

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'custos-'));
  file = join(folder, 'data.sqlite');
});
afterEach(() => rmSync(folder, { recursive: true }));

const first = 'create table pets (name text not null);';
const second = "alter table pets add column kind text not null default 'cat';";

/** Upgrades the file by `steps`, then reads it. */
function open(steps: readonly string[], stepsOf?: (userVersion: number) => number) {
  const handle = new Sqlite(file);
  try {
    upgradeSqlite(handle, steps, stepsOf);
  } finally {
    handle.close();
  }
  return content();
}

function content() {
  const handle = new Sqlite(file);
  try {
    return {
      version: handle.pragma('user_version', { simple: true }),
      pets: handle.prepare('select * from pets').all(),
    };
  } finally {
    handle.close();
  }
}

function write(sql: string): void {
  const handle = new Sqlite(file);
  handle.exec(sql);
  handle.close();
}

test('a new file runs every step, once', () => {
  expect(open([first, second])).toEqual({ version: 2, pets: [] });
  expect(open([first, second])).toEqual({ version: 2, pets: [] });
});

test('an older file runs the missing steps and keeps its rows', () => {
  open([first]);
  write("insert into pets values ('Tom')");
  const third = "update pets set kind = 'old ' || kind;";
  expect(open([first, second, third])).toEqual({ version: 3, pets: [{ name: 'Tom', kind: 'old cat' }] });
});

test('a file from before steps were counted has the given version', () => {
  write(`${first} pragma user_version = 583;`);
  expect(open([first, second], (version) => (version === 583 ? 1 : version))).toEqual({
    version: 2,
    pets: [],
  });
});

describe('a file is refused and unchanged', () => {
  const refusal =
    /^the data in `.*` was written by another version and cannot be upgraded \(.*\); run the version/;

  test('when a newer version wrote it', () => {
    open([first, second]);
    expect(() => open([first])).toThrow(refusal);
    expect(() => open([first])).toThrow('(it is at version 2 of the schema, expected at most 1)');
    expect(content()).toEqual({ version: 2, pets: [] });
  });

  test('when its rows do not fit a step', () => {
    open([first]);
    write("insert into pets values ('Tom'), ('Tom')");
    const steps = [first, second, 'create unique index pets_name on pets (name);'];
    expect(() => open(steps)).toThrow(refusal);
    expect(() => open(steps)).toThrow('(version 3 of the schema: UNIQUE constraint failed: pets.name)');
    expect(content()).toEqual({ version: 1, pets: [{ name: 'Tom' }, { name: 'Tom' }] });
  });
});

test('two processes that open an older file upgrade it once', async () => {
  open([first]);
  write("insert into pets values ('Tom')");
  // Slow enough that both processes arrive while it runs.
  const slow = `with recursive n(i) as (select 1 union all select i + 1 from n where i < 1000000)
    update pets set kind = kind || (select count(*) from n);`;
  const program = `
    Promise.all([import('better-sqlite3'), import(process.argv[1])]).then(([{ default: Sqlite }, { upgradeSqlite }]) => {
      upgradeSqlite(new Sqlite(process.argv[2]), JSON.parse(process.argv[3]));
    });
  `;
  const module = new URL('../../../src/storage/sqlite/upgrade-sqlite.ts', import.meta.url).href;
  const steps = JSON.stringify([first, second, slow]);
  const start = () => promisify(execFile)(process.execPath, ['-e', program, module, file, steps]);
  await Promise.all([start(), start(), start()]);
  expect(content()).toEqual({ version: 3, pets: [{ name: 'Tom', kind: 'cat1000000' }] });
});

describe('the database of a sandbox', () => {
  test('matches the entities: `npm run migration` writes missing steps', async () => {
    for (let start = 0; start < 2; start += 1) {
      const database = await openDatabase(entities, { kind: 'sqlite', file });
      expect(await database.orm.schema.getUpdateSchemaSQL({ wrap: false })).toBe('');
      await database.close();
    }
  });

  test('the database of a sandbox uses write-ahead logging, synced before a commit is acknowledged', async () => {
    const database = await openDatabase(entities, { kind: 'sqlite', file });
    const pragma = (name: string) => database.orm.em.fork().execute(`pragma ${name}`);
    expect(await pragma('journal_mode')).toEqual([{ journal_mode: 'wal' }]);
    // The log is synced by the dialect, and by SQLite at checkpoints.
    expect(await pragma('synchronous')).toEqual([{ synchronous: 1 }]);
    expect(await pragma('foreign_keys')).toEqual([{ foreign_keys: 1 }]);
    const { fdatasync } = fs;
    let synced = 0;
    Object.assign(fs, {
      fdatasync: (descriptor: number, done: (error: Error | null) => void) => {
        fdatasync(descriptor, (error) => {
          synced += fs.readlinkSync(`/proc/self/fd/${descriptor}`) === `${file}-wal` ? 1 : 0;
          done(error);
        });
      },
    });
    syncBuiltinESMExports();
    try {
      const em = database.orm.em.fork();
      await em.begin();
      await em.execute('create table pets (name text)');
      expect(synced).toBe(0);
      await em.commit();
      expect(synced).toBe(1);
      await em.execute("insert into pets values ('Tom')");
      expect(synced).toBe(2);
      await em.execute('select * from pets');
      expect(synced).toBe(2);
    } finally {
      Object.assign(fs, { fdatasync });
      syncBuiltinESMExports();
      await database.close();
    }
  });
});
