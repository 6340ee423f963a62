import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { entities } from '../../../src/domain/tables.ts';
import { sandboxKeyStore } from '../../../src/keys/sandbox-keys.ts';
import { chainStoreSteps } from '../../../src/sandbox/simulated/chains/store-schema.ts';
import { migrate } from '../../../src/storage/migrate.ts';
import { migrations } from '../../../src/storage/migrations/migrations.ts';
import type { SchemaMigration } from '../../../src/storage/migrations/schema-migration.ts';
import { type Database, openDatabase } from '../../../src/storage/open-database.ts';
import {
  columnValues,
  type RecordedCall,
  readReleasedData,
  type StoredRow,
  storedRow,
  writeReleasedFolder,
  writeSqliteFile,
} from '../../released-data/released-data.ts';
import { attempt } from '../../support/call.ts';
import { databaseKinds, type TestDatabase } from '../../support/databases.ts';
import { freshPostgres } from '../../support/postgres/borrow-database.ts';
import { operationsOn } from '../../support/run-operations.ts';
import { startSandbox } from '../../support/sandbox.ts';

// Databases of earlier versions are upgraded with all their data, and responses stay the same.

const releases = readdirSync(join(import.meta.dirname, '../../released-data'))
  .filter((file) => file.endsWith('.json'))
  .map((file) => basename(file, '.json'));
const sqliteSteps = migrations.map(({ sqlite }) => sqlite);

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'custos-upgrade-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** A newer version may add fields, and texts of refusals may change. */
function expectAnswer(call: RecordedCall, { status, body }: { status: number; body: unknown }): void {
  const expected = call.answer as { code?: string };
  expect({ status, body }, call.operation).toMatchObject({
    status: call.status,
    body: status < 400 ? expected : { code: expected.code },
  });
}

describe.each(releases)('data written by %s', (release) => {
  const data = readReleasedData(release);

  test('in the folder of a sandbox is kept at start, with unchanged responses', async () => {
    writeReleasedFolder(folder, data, { database: sqliteSteps, chains: chainStoreSteps });
    await using sandbox = await startSandbox({ dataFolder: folder });
    sandbox.clock.advance(data.nowMs - sandbox.clock.now());
    for (const call of data.calls) expectAnswer(call, await attempt(sandbox, call.operation, call));
  });

  describe.each(databaseKinds)('on %s', (kind) => {
    const url = kind === 'postgres' ? freshPostgres() : undefined;

    /** The database as that version had left it. */
    async function writeReleased(): Promise<void> {
      if (url === undefined) return writeSqliteFile(file(), data.database, sqliteSteps);
      await using database = disposable(
        await openDatabase(entities, { kind: 'postgres', url: await url, poolSize: 1 }),
      );
      await database.orm.em.fork().execute('drop schema public cascade; create schema public');
      await migrate(database.orm, migrations.slice(0, data.database.steps));
      await fillPostgres(database, data.database.tables);
    }

    const file = (): string => join(folder, 'custos.sqlite');

    /** Opens the database like a version with these migrations, and runs the missing ones. */
    async function open(list: readonly SchemaMigration[]): Promise<TestDatabase> {
      if (url === undefined) {
        return disposable(await openDatabase(entities, { kind: 'sqlite', file: file(), migrations: list }));
      }
      const database = disposable(
        await openDatabase(entities, { kind: 'postgres', url: await url, poolSize: 4 }),
      );
      try {
        await migrate(database.orm, list);
        return database;
      } catch (error) {
        await database.close();
        throw error;
      }
    }

    test('passes every later migration, and one more that fills its new column', async () => {
      await writeReleased();
      const before = await readAll(migrations);
      expect(before.get('wallets')).toHaveLength(data.database.tables.wallets!.length);

      await using next = await open([...migrations, nameWallets]);
      const after = await rowsOf(next);
      for (const [table, rows] of before) {
        expect(after.get(table)!.map(without('greeting')), table).toEqual(rows);
      }
      const greetings = after.get('wallets')!.map(({ display_name, greeting }) => [display_name, greeting]);
      expect(greetings).toEqual(
        before.get('wallets')!.map(({ display_name }) => [display_name, `hello ${display_name ?? 'wallet'}`]),
      );
      const counted = await next.orm.em.fork().execute('select app_id, wallets from wallet_counts');
      expect(counted).toEqual([{ app_id: data.memory.appId, wallets: before.get('wallets')!.length }]);
      await expectAnswersOf(next);
    });

    test('is unchanged after a failed migration, and passes when the cause is fixed', async () => {
      await writeReleased();
      const before = await readAll(migrations);
      const broken = { ...nameWallets, ...broke(nameWallets) };
      await expect(open([...migrations, broken])).rejects.toThrow(/nowhere/);
      expect(await readAll(migrations)).toEqual(before);
      await using next = await open([...migrations, nameWallets]);
      expect((await rowsOf(next)).get('wallets')![0]).toHaveProperty('greeting');
    });

    /** Every row, in the schema of the entities. */
    async function readAll(list: readonly SchemaMigration[]): Promise<Map<string, StoredRow[]>> {
      await using database = await open(list);
      expect(await database.orm.schema.getUpdateSchemaSQL({ wrap: false })).toBe('');
      return await rowsOf(database);
    }

    async function expectAnswersOf(database: TestDatabase): Promise<void> {
      const { memory, nowMs } = data;
      const app = { id: memory.appId, name: 'Acme' };
      const operations = operationsOn(database, {
        app,
        nowMs,
        keyStore: sandboxKeyStore(memory.masterKeyHex),
      });
      // The simulated chains are in a file beside the database.
      for (const call of data.calls.filter(({ operation }) => operation !== 'getWalletBalance')) {
        const { path, query, body } = call as {
          path?: Record<string, string>;
          query?: object;
          body?: unknown;
        };
        const input = { path: path ?? {}, query: { ...query }, body };
        expectAnswer(call, await operations.run(call.operation, input));
      }
      // Uses of wallets are still being recorded.
      await operations.services.uses.flush();
    }
  });
});

/** Like a migration that adds a column filled from existing rows, and a table of sums. */
const nameWallets: SchemaMigration = {
  name: `${String(migrations.length + 1).padStart(4, '0')}-name-wallets`,
  postgres: `
alter table "wallets" add "greeting" text null;
update "wallets" set "greeting" = 'hello ' || coalesce("display_name", 'wallet');
alter table "wallets" alter column "greeting" set not null;
create table "wallet_counts" ("app_id" text not null, "wallets" int not null, primary key ("app_id"));
insert into "wallet_counts" select "app_id", count(*) from "wallets" group by "app_id";
`,
  sqlite: `
alter table wallets add column greeting text not null default '';
update wallets set greeting = 'hello ' || coalesce(display_name, 'wallet');
create table wallet_counts (app_id text not null primary key, wallets integer not null);
insert into wallet_counts select app_id, count(*) from wallets group by app_id;
`,
};

/** The same, but its last statement fails. */
function broke({ postgres, sqlite }: SchemaMigration): Pick<SchemaMigration, 'postgres' | 'sqlite'> {
  const last = 'insert into nowhere values (1);\n';
  return { postgres: postgres + last, sqlite: sqlite + last };
}

function disposable(database: Database): TestDatabase {
  return { ...database, url: undefined, [Symbol.asyncDispose]: () => database.close() };
}

async function fillPostgres(
  { orm }: Database,
  tables: Readonly<Record<string, readonly StoredRow[]>>,
): Promise<void> {
  const em = orm.em.fork();
  for (const [table, rows] of Object.entries(tables)) {
    for (const row of rows) {
      const columns = Object.keys(row);
      const marks = columns.map(() => '?').join(', ');
      await em.execute(
        `insert into "${table}" ("${columns.join('", "')}") values (${marks})`,
        columnValues(row),
      );
    }
    if (rows.some((row) => 'sequence' in row)) {
      await em.execute(
        `select setval(pg_get_serial_sequence('${table}', 'sequence'), (select max("sequence") from "${table}"))`,
      );
    }
  }
}

/** Every row of every table of the entities, in an order of their own. */
async function rowsOf({ orm }: Database): Promise<Map<string, StoredRow[]>> {
  const rows = new Map<string, StoredRow[]>();
  for (const { tableName } of orm.getMetadata().getAll().values()) {
    const all = await orm.em.fork().execute<Record<string, unknown>[]>(`select * from "${tableName}"`);
    const sorted = all.map(storedRow).map((row) => ({ row, text: JSON.stringify(without('greeting')(row)) }));
    sorted.sort((a, b) => (a.text < b.text ? -1 : 1));
    rows.set(
      tableName,
      sorted.map(({ row }) => row),
    );
  }
  return rows;
}

const without =
  (column: string) =>
  (row: StoredRow): StoredRow =>
    Object.fromEntries(Object.entries(row).filter(([name]) => name !== column));
