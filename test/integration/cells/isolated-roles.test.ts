import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CellsFile } from '../../../src/config/cells.ts';
import { startProduction, type TestProduction } from '../../support/monitoring/production.ts';
import { freshPostgres } from '../../support/postgres/borrow-database.ts';
import { runCommand, temporaryFolder } from '../../support/run-custos.ts';

// Two cells in one database, each with the role that docs/cells.md creates for it. The test runs the statements of that
// page.

const suffix = randomBytes(4).toString('hex');
const path = join(temporaryFolder(), 'cells.json');
const keys = { CUSTOS_MASTER_KEY: randomBytes(32).toString('hex') };
const cells = ['eu2', 'eu3'] as const;

let admin: Client;
let urls: Record<(typeof cells)[number], string>;
let server: TestProduction;

/** The SQL of the page, for another role, schema and database. */
function statements(cell: string, database: string): string {
  const page = readFileSync(join(import.meta.dirname, '../../../docs/cells.md'), 'utf8');
  const [, sql] = /<!-- test: cell-role -->\n```sql\n([^`]*)```/.exec(page) ?? [];
  if (sql === undefined) throw new Error('docs/cells.md has no block `cell-role`');
  return sql
    .replaceAll('database custos ', `database "${database}" `)
    .replaceAll('custos_eu2', `custos_${cell}_${suffix}`)
    .replaceAll(/\beu2\b/g, cell);
}

async function asRole<T>(cell: (typeof cells)[number], work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: urls[cell] });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** The SQLSTATE with which a statement is refused; undefined if it succeeds. */
const refusal = (client: Client, sql: string): Promise<string | undefined> =>
  client.query(sql).then(
    () => undefined,
    (error: { code?: string }) => error.code,
  );

async function tablesOf(client: Client, schema: string): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    'select tablename as name from pg_tables where schemaname = $1',
    [schema],
  );
  expect(rows.length).toBeGreaterThan(70);
  return rows.map(({ name }) => name);
}

beforeAll(async () => {
  const shared = await freshPostgres();
  admin = new Client({ connectionString: shared });
  await admin.connect();
  const database = new URL(shared).pathname.slice(1);
  const urlOf = (cell: string): string => {
    const url = new URL(shared);
    [url.username, url.password] = [`custos_${cell}_${suffix}`, 'change-me'];
    url.searchParams.set('options', `-c search_path=${cell}`);
    return url.href;
  };
  urls = { eu2: urlOf('eu2'), eu3: urlOf('eu3') };
  for (const cell of cells) await admin.query(statements(cell, database));
  const directory = await freshPostgres();
  for (const cell of cells) {
    const added = await runCommand(
      ['cells', 'add', cell, '--directory-url', directory, '--database-url', urls[cell]],
      { env: { CUSTOS_CELLS_FILE: path } },
    );
    expect(added).toMatchObject({ code: 0, stderr: '' });
  }
  server = await startProduction({ ...keys, CUSTOS_CELLS_FILE: path });
});
afterAll(async () => {
  await server.close();
  for (const cell of cells) await admin.query(`drop owned by custos_${cell}_${suffix} cascade`);
  for (const cell of cells) await admin.query(`drop role custos_${cell}_${suffix}`);
  await admin.end();
});

test('each cell works with its role, and the role can use nothing of the other cell', async () => {
  for (const cell of cells) {
    const created = await runCommand(['apps', 'create', '--name', cell, '--cell', cell, '--json'], {
      env: { CUSTOS_CELLS_FILE: path },
    });
    const app = JSON.parse(created.stdout) as { id: string; secret: string };
    const response = await fetch(`${server.baseUrl}/v1/wallets`, {
      method: 'POST',
      headers: {
        ...server.proxied,
        'service-app-id': app.id,
        authorization: `Basic ${Buffer.from(`${app.id}:${app.secret}`).toString('base64')}`,
        'content-type': 'application/json',
      },
      body: JSON.stringify({ chain_type: 'ethereum' }),
    });
    expect(response.status).toBe(200);
  }
  for (const [own, other] of [cells, cells.toReversed()] as const) {
    await asRole(own!, async (client) => {
      // The cells add partitions by themselves, so each has its own tables.
      for (const name of await tablesOf(client, own!))
        expect(await refusal(client, `select 1 from "${own}"."${name}" limit 1`)).toBeUndefined();
      for (const name of await tablesOf(client, other!)) {
        for (const sql of [
          `select 1 from "${other}"."${name}"`,
          `insert into "${other}"."${name}" default values`,
          `delete from "${other}"."${name}"`,
          `drop table "${other}"."${name}"`,
          `select 1 from "${other}"."${name}" for update`,
        ])
          expect([sql, await refusal(client, sql)]).toEqual([sql, '42501']);
      }
      for (const sql of [
        `create table "${other}".mine (id int)`,
        `drop schema "${other}" cascade`,
        `alter schema "${other}" owner to current_user`,
        `grant all on schema "${other}" to current_user`,
        `set role custos_${other}_${suffix}`,
        'create schema mine',
        'create table public.mine (id int)',
        'select * from public.wallets',
        "copy (select 1) to program 'true'",
      ])
        expect([sql, await refusal(client, sql)]).toEqual([sql, '42501']);
    });
  }
});

test('a role that is not one of the cells cannot connect', async () => {
  await admin.query(`create role stranger_${suffix} login password 'change-me'`);
  try {
    const url = new URL(urls.eu2);
    url.username = `stranger_${suffix}`;
    const stranger = new Client({ connectionString: url.href });
    await expect(stranger.connect()).rejects.toMatchObject({ code: '42501' });
  } finally {
    await admin.query(`drop role stranger_${suffix}`);
  }
});

test('a URL with the role of one cell and the schema of another is refused', async () => {
  const file = JSON.parse(readFileSync(path, 'utf8')) as CellsFile;
  const wrong = join(temporaryFolder(), 'cells.json');
  const url = new URL(urls.eu2);
  url.searchParams.set('options', '-c search_path=eu3');
  const crossed = { ...file, cells: [{ name: 'crossed', database_url: url.href }] };
  writeFileSync(wrong, JSON.stringify(crossed));
  const { code, stdout, stderr } = await runCommand(['migrate', '--check'], {
    env: { CUSTOS_CELLS_FILE: wrong },
  });
  expect([code, stdout + stderr]).toEqual([
    1,
    expect.stringMatching(/no schema of the `search_path` exists/),
  ]);
});
