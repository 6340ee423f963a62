import { randomBytes } from 'node:crypto';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { beforeAll, expect, test } from 'vitest';
import { freshPostgres } from '../../support/postgres/borrow-database.ts';
import { runCommand, temporaryFolder } from '../../support/run-custos.ts';

// The commands as an operator uses them who grows from one database to three cells, two of them schemas of one database.

const path = join(temporaryFolder(), 'cells.json');
let urls: { first: string; second: string; third: string; directory: string };

function inSchema(url: string, schema: string): string {
  const named = new URL(url);
  named.searchParams.set('options', `-c search_path=${schema}`);
  return named.href;
}

beforeAll(async () => {
  const shared = await freshPostgres();
  urls = {
    first: await freshPostgres(),
    second: inSchema(shared, 'second'),
    third: inSchema(shared, 'third'),
    directory: await freshPostgres(),
  };
});

async function run(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await runCommand(args, {
    env: { CUSTOS_CELLS_FILE: path, CUSTOS_MASTER_KEY: randomBytes(32).toString('hex') },
  });
  expect({ code, stderr }).toMatchObject({ code: 0 });
  return stdout;
}

test('an operator adds cells, places apps in them, and drains one', async () => {
  await run('cells', 'add', 'first', '--directory-url', urls.directory, '--database-url', urls.first);
  expect(statSync(path).mode & 0o077).toBe(0);
  await run('cells', 'add', 'second', '--database-url', urls.second);
  await run('cells', 'add', 'third', '--database-url', urls.third);
  // Each step can be repeated.
  await run('cells', 'add', 'third', '--database-url', urls.third);
  expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual({
    directory_url: urls.directory,
    cells: [
      { name: 'first', database_url: urls.first },
      { name: 'second', database_url: urls.second },
      { name: 'third', database_url: urls.third },
    ],
  });

  const create = async (...flags: string[]): Promise<{ id: string }> =>
    JSON.parse(await run('apps', 'create', '--name', 'Acme', '--json', ...flags));
  const [one, two, three] = [await create(), await create(), await create()];
  const chosen = await create('--cell', 'second');
  await run('cells', 'drain', 'first');
  const [four, five] = [await create(), await create()];
  const placed = new Map<string, string>(
    (JSON.parse(await run('apps', 'list', '--json')) as { id: string; cell: string }[]).map(
      ({ id, cell }) => [id, cell],
    ),
  );
  expect([one, two, three].map(({ id }) => placed.get(id)).toSorted()).toEqual(['first', 'second', 'third']);
  expect(placed.get(chosen.id)).toBe('second');
  // The cell with the fewest apps among those that accept new ones.
  expect([four, five].map(({ id }) => placed.get(id)).toSorted()).toEqual(['second', 'third']);

  expect(JSON.parse(await run('cells', 'list', '--json'))).toMatchObject([
    { name: 'first', apps: 1, accepts_apps: false, state: 'ready' },
    { name: 'second', apps: 3, accepts_apps: true, state: 'ready' },
    {
      name: 'third',
      apps: 2,
      accepts_apps: true,
      state: 'ready',
      database: expect.stringMatching(/ third$/),
    },
  ]);
  expect(await run('cells', 'list')).not.toContain('postgresql:');

  // Commands with the id of an app find its cell; the secret is replaced there.
  const rotated = JSON.parse(await run('apps', 'rotate-secret', three.id, '--json'));
  expect(rotated).toMatchObject({ id: three.id, secret: expect.any(String) });
  expect(await run('migrate', '--check')).toBe(
    ['first', 'second', 'third'].map((name) => `${name}  the schema is up to date\n`).join(''),
  );
  expect(await run('keys', 'rotate', '--quiet')).toBe(
    ['first', 'second', 'third']
      .map((name) => `${name}: every key is under the current master key\n`)
      .join(''),
  );
});

test('a command that needs one cell names them, and one that is unavailable does not stop the others', async () => {
  const lacking = await runCommand(['restored', 'mark'], { env: { CUSTOS_CELLS_FILE: path } });
  expect([lacking.code, lacking.stderr]).toEqual([
    2,
    expect.stringContaining('--cell: expected one of `first`, `second`, `third`'),
  ]);
  const file = JSON.parse(readFileSync(path, 'utf8'));
  const other = join(temporaryFolder(), 'cells.json');
  const away = { name: 'away', database_url: 'postgresql://custos@127.0.0.1:1/custos' };
  writeFileSync(other, JSON.stringify({ ...file, cells: [away, ...file.cells] }));
  const migrated = await runCommand(['migrate'], { env: { CUSTOS_CELLS_FILE: other } });
  expect([migrated.code, migrated.stdout]).toEqual([
    1,
    expect.stringContaining('third  the schema is up to date'),
  ]);
  expect(migrated.stderr).toContain('away: ');
  const listed = await runCommand(['cells', 'list', '--json'], { env: { CUSTOS_CELLS_FILE: other } });
  expect(JSON.parse(listed.stdout)[0]).toMatchObject({ name: 'away', state: 'unavailable' });
});

test('a cell that the file may not have is refused before anything is made', async () => {
  const before = readFileSync(path, 'utf8');
  const url = inSchema(urls.first, 'never');
  for (const [name, databaseUrl, fault] of [
    ['EU 1', url, '/cells/3/name: expected a name of lower-case letters'],
    ['fifth', 'mysql://db', '/cells/3/database_url: expected a URL such as'],
    ['fifth', urls.second, '/cells/3/database_url: expected another database_url'],
  ] as const) {
    const { code, stderr } = await runCommand(['cells', 'add', name, '--database-url', databaseUrl], {
      env: { CUSTOS_CELLS_FILE: path },
    });
    expect([code, stderr]).toEqual([2, expect.stringContaining(fault)]);
  }
  expect(readFileSync(path, 'utf8')).toBe(before);
  const client = new Client({ connectionString: urls.first });
  await client.connect();
  const { rows } = await client.query("select 1 from pg_namespace where nspname = 'never'");
  await client.end();
  expect(rows).toEqual([]);
});

test('a schema is distributed only where Citus is', async () => {
  const url = inSchema(urls.first, 'fourth');
  const { code, stderr } = await runCommand(
    ['cells', 'add', 'fourth', '--distribute', '--database-url', url],
    { env: { CUSTOS_CELLS_FILE: path } },
  );
  expect([code, stderr]).toEqual([1, expect.stringContaining('does not have the extension `citus`')]);
});

test('a cell whose schema has an unusual name is refused, and no other schema is touched', async () => {
  const { code, stderr } = await runCommand(
    ['cells', 'add', 'fourth', '--database-url', inSchema(urls.second, 'second-1')],
    { env: { CUSTOS_CELLS_FILE: path } },
  );
  expect([code, stderr]).toEqual([2, expect.stringContaining('such as `eu1`, got `second-1`')]);
  expect(readFileSync(path, 'utf8')).not.toContain('fourth');
});
