import { randomBytes } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Client } from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { administerApps } from '../../../src/admin/administration.ts';
import { exportLog } from '../../../src/admin/audit/export-log.ts';
import { verifyLog } from '../../../src/admin/audit/verify-log.ts';
import { checkDirectory } from '../../../src/admin/doctor/check-directory.ts';
import type { CellSettings, CellsFile } from '../../../src/config/cells.ts';
import { limitTo } from '../../../src/jobs/job-context.ts';
import { openCellDirectory } from '../../../src/storage/cell-directory.ts';
import { startProduction, type TestProduction } from '../../support/monitoring/production.ts';
import { freshPostgres } from '../../support/postgres/borrow-database.ts';
import { type PostgresProxy, startPostgresProxy } from '../../support/postgres/postgres-proxy.ts';
import { temporaryFolder } from '../../support/run-custos.ts';

/*
 * One server over two cells: the app of each is in its own database, behind a proxy that can freeze it. The directory
 * is a third database.
 */

interface PlacedApp {
  readonly id: string;
  readonly secret: string;
  readonly url: string;
}

const keys = { CUSTOS_MASTER_KEY: randomBytes(32).toString('hex') };
const folder = temporaryFolder();
const path = join(folder, 'cells.json');

let server: TestProduction;
let proxies: Record<'eu' | 'us' | 'directory', PostgresProxy>;
let apps: Record<'eu' | 'us', PlacedApp>;
/** An app of the first cell without an entry in the directory, as in a deployment that had one database before. */
let older: PlacedApp;
let file: CellsFile;

beforeAll(async () => {
  const urls = { eu: await freshPostgres(), us: await freshPostgres(), directory: await freshPostgres() };
  proxies = {
    eu: await startPostgresProxy(urls.eu),
    us: await startPostgresProxy(urls.us),
    directory: await startPostgresProxy(urls.directory),
  };
  const directory = openCellDirectory(urls.directory, () => undefined);
  await directory.prepare();
  const placed = async (cell: 'eu' | 'us'): Promise<PlacedApp> => {
    const { id, secret } = await administerApps({ kind: 'postgres', url: urls[cell] }).createApp(cell);
    expect(await directory.place({ app_id: id, cell })).toBe(true);
    return { id, secret, url: urls[cell] };
  };
  apps = { eu: await placed('eu'), us: await placed('us') };
  older = {
    ...(await administerApps({ kind: 'postgres', url: urls.eu }).createApp('older')),
    ...{ url: urls.eu },
  };
  await directory.close();
  file = {
    directory_url: proxies.directory.url,
    cells: (['eu', 'us'] as const).map((name) => ({ name, database_url: proxies[name].url })),
  };
  writeFileSync(path, JSON.stringify(file));
  // The machine of the tests may be busy: requests are not refused because the event loop is late.
  server = await startProduction({
    ...keys,
    CUSTOS_CELLS_FILE: path,
    CUSTOS_MAX_DELAY_MS: '3000',
    CUSTOS_RATE_LIMIT: '0',
  });
});
afterAll(async () => {
  await server.close();
  for (const proxy of Object.values(proxies)) await proxy[Symbol.asyncDispose]();
});

interface Called {
  readonly status: number;
  readonly body: { readonly id?: string };
  readonly retryAfter: string | null;
  readonly ms: number;
}

async function call(
  app: Pick<PlacedApp, 'id' | 'secret'>,
  method: string,
  target: string,
  body?: object,
  headers: Readonly<Record<string, string>> = {},
): Promise<Called> {
  const startedMs = performance.now();
  const response = await fetch(`${server.baseUrl}${target}`, {
    method,
    headers: {
      ...server.proxied,
      'service-app-id': app.id,
      authorization: `Basic ${Buffer.from(`${app.id}:${app.secret}`).toString('base64')}`,
      'content-type': 'application/json',
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return {
    status: response.status,
    body: (await response.json()) as Called['body'],
    retryAfter: response.headers.get('retry-after'),
    ms: performance.now() - startedMs,
  };
}

const createWallet = (app: PlacedApp, headers?: Readonly<Record<string, string>>) =>
  call(app, 'POST', '/v1/wallets', { chain_type: 'ethereum' }, headers);

const sign = (app: PlacedApp, walletId: string) =>
  call(app, 'POST', `/v1/wallets/${walletId}/rpc`, {
    method: 'personal_sign',
    params: { message: 'Hello', encoding: 'utf-8' },
  });

/** The number of rows of each table that has an app, by app. */
async function rowsByApp(url: string): Promise<ReadonlyMap<string, number>> {
  const client = new Client({ connectionString: url });
  await client.connect();
  const { rows: tables } = await client.query<{ name: string }>(
    "select distinct table_name as name from information_schema.columns where column_name = 'app_id' and table_schema = current_schema()",
  );
  const counts = new Map<string, number>();
  for (const { name } of tables) {
    const { rows } = await client.query<{ app_id: string | null; count: string }>(
      `select app_id, count(*) from "${name}" group by app_id`,
    );
    for (const { app_id: id, count } of rows)
      if (id !== null) counts.set(id, (counts.get(id) ?? 0) + Number(count));
  }
  await client.end();
  return counts;
}

test('each app works through one address, and its rows are in its cell only', async () => {
  for (const app of [apps.eu, apps.us]) {
    const wallet = await createWallet(app);
    expect(wallet.status).toBe(200);
    expect((await sign(app, wallet.body.id!)).status).toBe(200);
    expect((await call(app, 'GET', `/v1/wallets/${wallet.body.id}`)).status).toBe(200);
    const user = await call(app, 'POST', '/v1/users', {
      linked_accounts: [{ type: 'email', address: `${randomBytes(6).toString('hex')}@acme.example` }],
    });
    expect(user.status).toBe(200);
    const other = app === apps.eu ? apps.us : apps.eu;
    expect((await call(other, 'GET', `/v1/wallets/${wallet.body.id}`)).status).toBe(404);
    const rows = await rowsByApp(app.url);
    expect(rows.get(app.id)).toBeGreaterThan(5);
    expect(rows.has(other.id)).toBe(false);
  }
});

test('credentials of one app do not open another, in the same cell or in another one', async () => {
  const wrong = await call({ id: apps.eu.id, secret: apps.us.secret }, 'GET', '/v1/wallets');
  expect(wrong.status).toBe(401);
  const mixed = await call(apps.us, 'GET', '/v1/wallets', undefined, { 'service-app-id': apps.eu.id });
  expect(mixed).toMatchObject({ status: 401, body: wrong.body });
  const unknown = await call({ id: 'unknown', secret: 'unknown' }, 'GET', '/v1/wallets');
  expect(unknown).toMatchObject({ status: 401, body: wrong.body });
});

test('the keys of an app are those of the app in the path, whatever the header says', async () => {
  const ask = async (appId: string, named: string) => {
    const response = await fetch(`${server.baseUrl}/v1/apps/${appId}/jwks.json`, {
      headers: { ...server.proxied, 'service-app-id': named },
    });
    return response.status;
  };
  expect(await ask(apps.us.id, apps.us.id)).toBe(200);
  expect(await ask(apps.us.id, apps.eu.id)).toBe(200);
  expect(await ask(apps.eu.id, apps.us.id)).toBe(200);
});

test('an idempotency key of one app is not one of an app in another cell', async () => {
  const key = { 'service-idempotency-key': randomBytes(8).toString('hex') };
  const [eu, again, us] = [
    await createWallet(apps.eu, key),
    await createWallet(apps.eu, key),
    await createWallet(apps.us, key),
  ];
  expect(again.body.id).toBe(eu.body.id);
  expect(us.body.id).not.toBe(eu.body.id);
});

test('while a cell is frozen, the apps of the other are served, and its own get 503; nothing acknowledged is lost', async () => {
  const acknowledged = { eu: new Set<string>(), us: new Set<string>() };
  const refused: Called[] = [];
  const late: number[] = [];
  let isOver = false;
  const load = async (cell: 'eu' | 'us'): Promise<void> => {
    while (!isOver) {
      const { status, body, ...rest } = await createWallet(apps[cell]);
      if (status === 200) acknowledged[cell].add(body.id!);
      else if (cell === 'us') {
        refused.push({ status, body, ...rest });
        await pause(50);
      } else expect({ status, body }).toBe('never, because the cell is not frozen');
      if (cell === 'eu') late.push(rest.ms);
    }
  };
  proxies.us.freeze();
  const work = ['eu', 'eu', ...Array<'us'>(40).fill('us')].map((cell) => load(cell as 'eu' | 'us'));
  await expect
    .poll(() => Math.min(refused.length, 2 * acknowledged.eu.size), { timeout: 60_000 })
    .toBeGreaterThan(40);
  expect(late.sort((one, other) => one - other)[Math.floor(late.length / 2)]).toBeLessThan(3_000);
  for (const { status, retryAfter } of refused) expect([status, Number(retryAfter) > 0]).toEqual([503, true]);
  const ready = await fetch(`${server.adminUrl}/readyz`);
  expect(ready.status).toBe(200);
  await expect
    .poll(() => server.metrics(), { timeout: 20_000 })
    .toContain('custos_cell_unavailable{cell="us"} 1');
  expect(await server.metrics()).toContain('custos_cell_unavailable{cell="eu"} 0');
  proxies.us.thaw();
  const known = acknowledged.us.size;
  await expect.poll(() => acknowledged.us.size, { timeout: 30_000 }).toBeGreaterThan(known + 3);
  isOver = true;
  await Promise.all(work);
  for (const cell of ['eu', 'us'] as const) {
    const client = new Client({ connectionString: apps[cell].url });
    await client.connect();
    const { rows } = await client.query<{ id: string }>('select id from wallets');
    await client.end();
    const stored = new Set(rows.map(({ id }) => id));
    expect([...acknowledged[cell]].filter((id) => !stored.has(id))).toEqual([]);
  }
  await expect
    .poll(() => server.metrics(), { timeout: 30_000 })
    .toContain('custos_cell_unavailable{cell="us"} 0');
});

test('while heartbeats are stored, readiness and metrics wait for no answer of a cell', async () => {
  // Only a check of readiness sends it.
  for (const cell of ['eu', 'us'] as const) proxies[cell].break('as recovering', 'silence');
  try {
    expect((await fetch(`${server.adminUrl}/readyz`)).status).toBe(200);
    expect(await server.metrics()).toEqual(
      expect.arrayContaining([
        'custos_cell_unavailable{cell="eu"} 0',
        'custos_cell_unavailable{cell="us"} 0',
      ]),
    );
    expect(proxies.eu.faults + proxies.us.faults).toBe(0);
  } finally {
    for (const cell of ['eu', 'us'] as const) proxies[cell].heal();
  }
});

test('while the directory is away, apps that are known are served, and others get 503', async () => {
  for (const app of [apps.us, older]) expect((await call(app, 'GET', '/v1/wallets')).status).toBe(200);
  // Longer than the absence of an entry is cached.
  await pause(2_500);
  proxies.directory.freeze();
  try {
    for (const app of [apps.us, older]) expect((await call(app, 'GET', '/v1/wallets')).status).toBe(200);
    const unknown = await call({ id: 'never-seen', secret: 'x' }, 'GET', '/v1/wallets');
    expect([unknown.status, Number(unknown.retryAfter) > 0]).toEqual([503, true]);
  } finally {
    proxies.directory.thaw();
  }
  await expect
    .poll(async () => (await call({ id: 'not-there', secret: 'x' }, 'GET', '/v1/wallets')).status, {
      timeout: 30_000,
    })
    .toBe(401);
});

test('each cell has an audit log of its own, which verifies offline', async () => {
  for (const { url } of [apps.eu, apps.us]) {
    const to = join(temporaryFolder(), 'audit');
    await expect
      .poll(() => exportLog({ kind: 'postgres', url }, to).catch(() => undefined), { timeout: 20_000 })
      .toMatchObject({ from: 0 });
    const verified = await verifyLog(to);
    expect(verified.faults).toEqual([]);
    expect(verified.size).toBeGreaterThan(1);
    rmSync(to, { recursive: true });
  }
});

test('a server starts while a cell is away, and serves it when it is back', async () => {
  const lines: string[] = [];
  const noted = (_: object, message: string) => void lines.push(message);
  const log = { debug: () => undefined, info: noted, warn: noted, error: noted };
  proxies.us.freeze();
  const first = server;
  const second = await startProduction({ ...keys, CUSTOS_CELLS_FILE: path }, log);
  try {
    server = second;
    expect((await call(apps.eu, 'GET', '/v1/wallets')).status).toBe(200);
    expect((await call(apps.us, 'GET', '/v1/wallets')).status).toBe(503);
    proxies.us.thaw();
    await expect
      .poll(async () => (await call(apps.us, 'GET', '/v1/wallets')).status, { timeout: 30_000 })
      .toBe(200);
    expect(lines).toContain('a cell could not start; will retry');
  } finally {
    server = first;
    proxies.us.thaw();
    await second.close();
  }
});

async function setReadOnly(url: string, value: 'on' | 'off'): Promise<void> {
  const client = new Client({ connectionString: `${url}?options=-c%20default_transaction_read_only=off` });
  await client.connect();
  const name = new URL(url).pathname.slice(1);
  await client.query(`alter database "${name}" set default_transaction_read_only = ${value}`);
  // Sessions keep the setting that they began with.
  await client.query(
    'select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and pid <> pg_backend_pid()',
    [name],
  );
  await client.end();
}

test('a server does not wait for a cell in recovery, reports it once, and serves it when it is promoted', async () => {
  const lines: string[] = [];
  const noted = (level: string) => (_: object, message: string) => void lines.push(`${level}: ${message}`);
  const log = { debug: noted('debug'), info: noted('info'), warn: noted('warn'), error: noted('error') };
  const standby = await freshPostgres();
  await setReadOnly(standby, 'on');
  const recovering = join(folder, 'recovering.json');
  const cells = [{ name: 'asia', database_url: standby }, ...file.cells];
  writeFileSync(recovering, JSON.stringify({ ...file, cells }));
  const first = server;
  const startedMs = performance.now();
  const second = await startProduction({ ...keys, CUSTOS_CELLS_FILE: recovering }, log);
  try {
    expect(performance.now() - startedMs).toBeLessThan(60_000);
    server = second;
    expect((await call(apps.us, 'GET', '/v1/wallets')).status).toBe(200);
    await expect
      .poll(() => lines, { timeout: 30_000 })
      .toContain('debug: a cell could not start; will retry');
    expect(lines.filter((line) => line === 'error: a cell could not start; will retry')).toHaveLength(1);
    expect(lines.filter((line) => line.includes('waiting until it accepts changes'))).toEqual([]);
    await setReadOnly(standby, 'off');
    await expect.poll(() => lines, { timeout: 30_000 }).toContain('info: a cell has started');
  } finally {
    server = first;
    await second.close();
  }
});

test('starts and retries of cells share their places, and a failure frees one', async () => {
  const inTurn = limitTo(2);
  const order: number[] = [];
  let running = 0;
  let most = 0;
  const work = async (at: number): Promise<number> => {
    order.push(at);
    running += 1;
    most = Math.max(most, running);
    await pause(5);
    running -= 1;
    if (at === 1) throw new Error('away');
    return at;
  };
  const results = await Promise.allSettled([0, 1, 2, 3, 4].map((at) => inTurn(() => work(at))));
  expect(results.map(({ status }) => status === 'fulfilled')).toEqual([true, false, true, true, true]);
  expect([order, most]).toEqual([[0, 1, 2, 3, 4], 2]);
  expect(await inTurn(() => work(5))).toBe(5);
});

test('a server does not start when two cells have the same database', async () => {
  const twice = join(folder, 'twice.json');
  const again = `${file.cells[0]!.database_url}?application_name=again`;
  writeFileSync(
    twice,
    JSON.stringify({ ...file, cells: [...file.cells, { name: 'asia', database_url: again }] }),
  );
  await expect(startProduction({ ...keys, CUSTOS_CELLS_FILE: twice })).rejects.toThrow(
    /the cells `(eu|asia)` and `(eu|asia)` have the same database and schema/,
  );
});

test('a server without its directory is not ready, and says so; one with a cell too few says so', async () => {
  const lines: string[] = [];
  const write = (fields: object, message: string): void => {
    const { err } = fields as { err?: Error };
    lines.push(`${message} ${err?.message ?? ''}`);
  };
  const log = { debug: write, info: write, warn: write, error: write };
  const start = (content: CellsFile) => {
    const other = join(folder, 'other.json');
    writeFileSync(other, JSON.stringify(content));
    return startProduction({ ...keys, CUSTOS_CELLS_FILE: other }, log);
  };
  const lost = await start({ ...file, directory_url: 'postgresql://custos@127.0.0.1:1/directory' });
  try {
    expect((await fetch(`${lost.adminUrl}/readyz`)).status).toBe(503);
    expect(lines).toContainEqual(
      expect.stringMatching(
        /^the directory of apps is unavailable; .*directory_url\) cannot be reached: connect/,
      ),
    );
  } finally {
    await lost.close();
  }
  const fewer = await start({ ...file, cells: file.cells.slice(0, 1) });
  try {
    expect((await fetch(`${fewer.adminUrl}/readyz`)).status).toBe(200);
    expect(lines).toContainEqual(
      expect.stringContaining('in the cell `us`, which the cells file does not have'),
    );
  } finally {
    await fewer.close();
  }
});

test('the doctor compares the directory with the cells', async () => {
  const examine = (change: { directoryUrl?: string; names?: readonly string[] }) => {
    const cells = (change.names ?? ['eu', 'us']).map((name) => ({
      ...{ name, databaseUrl: apps[name === 'eu' ? 'eu' : 'us'].url, poolSize: 1, acceptsApps: true },
    })) as [CellSettings, ...CellSettings[]];
    return checkDirectory({ directoryUrl: change.directoryUrl ?? file.directory_url, cells });
  };
  const texts = async (change: Parameters<typeof examine>[0]) =>
    (await examine(change)).map(({ name, state, text }) => `${state} ${name}: ${text}`).join('\n');
  expect(await texts({})).toBe('ok directory: it has 2 app(s)');
  expect(await texts({ directoryUrl: apps.eu.url })).toMatch(
    /^fault directory: .*lacks its table `app_cells`/,
  );
  const nowhere = 'postgresql://custos@127.0.0.1:1/directory';
  expect(await texts({ directoryUrl: nowhere })).toMatch(/^fault directory: .*cannot be reached/);
  expect(await texts({ names: ['eu'] })).toMatch(
    /^fault directory: .*`us`, which the cells file does not have/,
  );
  expect(await texts({ names: ['eu', 'us', 'asia'] })).toMatch(
    /it places apps of the cell `asia` in another one: .* in `us`(?:.|\n)*fault cells: the cells `us` and `asia` have the same/,
  );
  const empty = await freshPostgres();
  const directory = openCellDirectory(empty, () => undefined);
  await directory.prepare();
  await directory.close();
  const found = await texts({ directoryUrl: empty });
  expect(found).toBe(`fault directory: it has no entry for apps of the cell \`us\`: ${apps.us.id}`);
});

test('an address that guesses apps is refused before the directory is asked; known apps of that address are served', async () => {
  const first = server;
  server = await startProduction({
    ...{ ...keys, CUSTOS_CELLS_FILE: path, CUSTOS_MAX_DELAY_MS: '3000' },
    // One of fifty workers allows two wrong attempts, and one more every five seconds. A single worker allows one more
    // every 100 ms, so on a busy machine, it may let through whatever is sent after a refusal.
    CUSTOS_WORKERS: '50',
  });
  try {
    const guess = (at: number) => call({ id: `guess-${at}`, secret: 'x' }, 'GET', '/v1/wallets');
    // Its credentials are known for two seconds, so the rest must not take longer.
    expect((await call(apps.us, 'GET', '/v1/wallets')).status).toBe(200);
    let at = 0;
    await expect
      .poll(
        async () => {
          at += 5;
          const guesses = Array.from({ length: 5 }, (_, index) => guess(at + index));
          return (await Promise.all(guesses)).map(({ status }) => status);
        },
        { interval: 0, timeout: 60_000 },
      )
      .toEqual([429, 429, 429, 429, 429]);
    proxies.directory.freeze();
    expect((await guess(0)).status).toBe(429);
    expect((await call(apps.us, 'GET', '/v1/wallets')).status).toBe(200);
  } finally {
    proxies.directory.thaw();
    await server.close();
    server = first;
  }
});
