import { randomBytes } from 'node:crypto';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { beforeAll, expect, test } from 'vitest';
import type { CellsFile } from '../../../src/config/cells.ts';
import { openCellDirectory } from '../../../src/storage/cell-directory.ts';
import { freshPostgres } from '../../support/postgres/borrow-database.ts';
import { runCommand, temporaryFolder } from '../../support/run-custos.ts';

// The commands as an operator uses them who grows from one database to three cells, two of them schemas of one database.

const masterKey = randomBytes(32).toString('hex');
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
    env: { CUSTOS_CELLS_FILE: path, CUSTOS_MASTER_KEY: masterKey },
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

/** Runs a command with another cells file, which differs from the one of the other tests. */
async function runWith(change: (file: CellsFile) => void, ...args: string[]) {
  const file = JSON.parse(readFileSync(path, 'utf8')) as CellsFile;
  change(file);
  const other = join(temporaryFolder(), 'cells.json');
  writeFileSync(other, JSON.stringify(file));
  return runCommand(args, { env: { CUSTOS_CELLS_FILE: other, CUSTOS_MASTER_KEY: masterKey } });
}

const nowhere = 'postgresql://custos@127.0.0.1:1/custos';
const unreachable =
  /the database of the cell `second` cannot be reached: connect ECONNREFUSED 127\.0\.0\.1:1/;

function breakSecond(file: CellsFile): void {
  file.cells[1]!.database_url = nowhere;
}

/** The apps in the directory, by cell. */
async function placed(): Promise<ReadonlyMap<string, number>> {
  const directory = openCellDirectory(urls.directory, () => undefined);
  const counts = await directory.countByCell();
  await directory.close();
  return counts;
}

test.each([[], ['--check'], ['--plan']])('custos migrate refuses an unknown cell: %s', async (...flags) => {
  const { code, stdout, stderr } = await runCommand(['migrate', '--cell', 'nosuch', ...flags], {
    env: { CUSTOS_CELLS_FILE: path },
  });
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toContain('--cell: expected one of `first`, `second`, `third`, got `nosuch`');
});

test('an app is not placed in a cell that is down or drained, and a failure leaves no entry', async () => {
  const before = await placed();
  const down = await runWith(breakSecond, 'apps', 'create', '--name', 'Acme', '--cell', 'second');
  expect(down).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(unreachable) });
  expect(await placed()).toEqual(before);
  const create = ['apps', 'create', '--name', 'Acme', '--json'];
  const drainThird = (file: CellsFile): void => {
    file.cells[2]!.accepts_apps = false;
  };
  const drained = await runWith(drainThird, ...create, '--cell', 'third');
  expect(drained).toMatchObject({ code: 1, stderr: expect.stringContaining('the cell `third` is drained') });
  expect(await placed()).toEqual(before);
  const forced = await runWith(drainThird, ...create, '--cell', 'third', '--force');
  expect(forced).toMatchObject({ code: 0, stderr: '' });
  expect(JSON.parse(forced.stdout)).toMatchObject({ cell: 'third' });
  // The first is drained, and the third accepts apps but has more of them than a cell that is down.
  const onlyDown = await runWith(
    (file) => {
      breakSecond(file);
      drainThird(file);
      file.cells[0]!.accepts_apps = false;
    },
    ...create,
  );
  expect(onlyDown).toMatchObject({ code: 1, stderr: expect.stringMatching(unreachable) });
  const reachable = await runWith(
    (file) => {
      file.cells[1] = { name: 'empty', database_url: nowhere };
    },
    ...create,
  );
  expect(reachable).toMatchObject({ code: 0, stderr: '' });
  expect(JSON.parse(reachable.stdout)).toMatchObject({ cell: 'third' });
});

test('a cell that is down keeps no command from the others, and is named', async () => {
  const listed = await runWith(breakSecond, 'apps', 'list', '--json');
  expect(listed).toMatchObject({ code: 1, stderr: expect.stringMatching(unreachable) });
  const cells = new Set((JSON.parse(listed.stdout) as { cell: string }[]).map(({ cell }) => cell));
  expect([...cells].toSorted()).toEqual(['first', 'third']);
  const rotated = await runWith(breakSecond, 'keys', 'rotate', '--quiet');
  expect(rotated).toMatchObject({ code: 1, stderr: expect.stringMatching(unreachable) });
  expect(rotated.stdout).toContain('third: every key is under the current master key');
  const state = await runWith(breakSecond, 'cells', 'list', '--json');
  expect(state).toMatchObject({ code: 1, stderr: expect.stringMatching(unreachable) });
  expect(JSON.parse(state.stdout)[1]).toMatchObject({ name: 'second', state: 'unavailable' });
});

test('a directory that cannot be used is named in a sentence, without a stack', async () => {
  const list = ['cells', 'list', '--json'];
  const noTable = await freshPostgres();
  const missing = new URL(urls.directory);
  missing.pathname = '/no_such_database';
  for (const [url, reason] of [
    [nowhere, 'cannot be reached: connect ECONNREFUSED'],
    [missing.href, 'cannot be used: database "no_such_database" does not exist'],
    [noTable, 'lacks its table `app_cells`'],
  ] as const) {
    const change = (file: CellsFile): void => {
      file.directory_url = url;
    };
    for (const command of [list, ['apps', 'rotate-secret', 'no-such-app']]) {
      const { code, stderr } = await runWith(change, ...command);
      expect([code, stderr]).toEqual([
        1,
        expect.stringContaining(`the directory of apps (directory_url) ${reason}`),
      ]);
      expect(stderr).not.toMatch(/DATABASE_URL|^ +at /m);
    }
    const { stdout } = await runWith(change, ...list);
    expect(JSON.parse(stdout)).toMatchObject([{ apps: null }, { apps: null }, { apps: null }]);
  }
});

test('a cell that is removed from the file while it has apps is named', async () => {
  const removeThird = (file: CellsFile): void => {
    file.cells = file.cells.slice(0, 2);
  };
  const listed = await runWith(removeThird, 'cells', 'list');
  expect(listed).toMatchObject({ code: 1, stdout: expect.stringContaining('second') });
  expect(listed.stderr).toMatch(
    /the directory places \d+ app\(s\) in the cell `third`, which the cells file does not/,
  );
  const { id } = JSON.parse(await run('apps', 'create', '--name', 'Acme', '--cell', 'third', '--json'));
  const configured = await runWith(removeThird, 'apps', 'configure', id, '--settings', '{}');
  expect(configured).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`the directory places the app \`${id}\` in the cell \`third\`, which`),
  });
  const unknown = await runWith(removeThird, 'apps', 'configure', 'no-such-app', '--settings', '{}');
  expect(unknown).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('no cell has an app `no-such-app`; see `custos apps list`'),
  });
});

test('one schema is not added under two names, and another directory is refused', async () => {
  const before = readFileSync(path, 'utf8');
  const otherHost = new URL(urls.first);
  otherHost.hostname = otherHost.hostname === 'localhost' ? '127.0.0.1' : 'localhost';
  for (const [url, owner] of [
    [otherHost.href, 'first'],
    [inSchema(urls.second, 'second,public'), 'second'],
  ] as const) {
    const added = await runCommand(['cells', 'add', 'again', '--database-url', url], {
      env: { CUSTOS_CELLS_FILE: path },
    });
    expect(added).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`another database or schema than that of the cell \`${owner}\``),
    });
  }
  const other = await runCommand(
    ['cells', 'add', 'third', '--database-url', urls.third, '--directory-url', urls.first],
    { env: { CUSTOS_CELLS_FILE: path } },
  );
  expect(other).toMatchObject({ code: 2, stderr: expect.stringContaining('names another directory') });
  expect(readFileSync(path, 'utf8')).toBe(before);
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
