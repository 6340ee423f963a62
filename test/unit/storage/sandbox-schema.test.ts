import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { renderSandboxSchema } from '../../../codegen/storage/render-schema.ts';
import { entities } from '../../../src/domain/tables.ts';
import { openDatabase } from '../../../src/storage/open-database.ts';

test('the sandbox schema is what the entities say: `node codegen/storage/write-schema.ts` renews it', async () => {
  const written = readFileSync(
    new URL('../../../src/storage/generated/sandbox-schema.ts', import.meta.url),
    'utf8',
  );
  expect(written).toBe(await renderSandboxSchema());
});

describe('a file', () => {
  let folder: string;
  let file: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'custos-'));
    file = join(folder, 'data.sqlite');
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  /** Opens and closes the file, as a start of the program does. */
  async function visit() {
    const database = await openDatabase(entities, { kind: 'sqlite', file });
    try {
      const difference = await database.orm.schema.getUpdateSchemaSQL({ wrap: false });
      return difference.trim();
    } finally {
      await database.close();
    }
  }

  function change(...statements: string[]): void {
    const handle = new Sqlite(file);
    for (const statement of statements) handle.exec(statement);
    // What another version would have written.
    handle.pragma('user_version = 7');
    handle.close();
  }

  test('that is new gets this version’s schema, and keeps it', async () => {
    expect(await visit()).toBe('');
    expect(await visit()).toBe('');
  });

  test('is written ahead and synced at every commit', async () => {
    const database = await openDatabase(entities, { kind: 'sqlite', file });
    const pragma = (name: string) => database.orm.em.fork().execute(`pragma ${name}`);
    expect(await pragma('journal_mode')).toEqual([{ journal_mode: 'wal' }]);
    expect(await pragma('synchronous')).toEqual([{ synchronous: 2 }]);
    expect(await pragma('foreign_keys')).toEqual([{ foreign_keys: 1 }]);
    await database.close();
  });

  test('of an older version gets what it lacks and loses nothing', async () => {
    await visit();
    change(
      "insert into apps (id, name, secret_hashes, created_at_ms) values ('a', 'Acme', '[]', 1)",
      'drop index wallets_by_chain_type',
      'drop table wallet_signers',
      'alter table wallets drop column display_name',
    );
    expect(await visit()).toBe('');
    const handle = new Sqlite(file);
    expect(handle.prepare('select id, name from apps').all()).toEqual([{ id: 'a', name: 'Acme' }]);
    handle.close();
  });

  test.each([
    {
      what: 'lacks a column that its rows must have',
      statements: [
        "insert into apps (id, name, secret_hashes, created_at_ms) values ('a', 'Acme', '[]', 1)",
        'alter table apps drop column secret_hashes',
      ],
    },
    {
      what: 'has a column that this version knows nothing of',
      statements: ['alter table apps add column plan text not null default 1'],
    },
  ])('that $what is refused and stays as it was', async ({ statements }) => {
    await visit();
    change(...statements);
    const before = contentOf(file);
    await expect(visit()).rejects.toThrow(
      /^the data in `.*` was written by another version and cannot be brought up to date \(.*\); run the version/s,
    );
    expect(contentOf(file)).toEqual(before);
  });
});

function contentOf(file: string): unknown[] {
  const handle = new Sqlite(file);
  try {
    return [
      ...handle.prepare('select type, name, sql from sqlite_master order by name').all(),
      ...handle.prepare('select * from apps').all(),
    ];
  } finally {
    handle.close();
  }
}
