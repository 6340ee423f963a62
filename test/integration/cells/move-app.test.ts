import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { administerApps } from '../../../src/admin/administration.ts';
import { abortMove, type MoveStep, moveApp } from '../../../src/admin/move-app.ts';
import { readCells } from '../../../src/config/config.ts';
import { type Ask, movedTables, stayingTables, takenRows } from '../../../src/storage/app-rows.ts';
import { openCellDirectory } from '../../../src/storage/cell-directory.ts';
import { startProduction, type TestProduction } from '../../support/monitoring/production.ts';
import { freshPostgres } from '../../support/postgres/borrow-database.ts';
import { runCommand, temporaryFolder } from '../../support/run-custos.ts';

/*
 * Apps that move between two cells, under load from two servers that serve both.
 */

interface App {
  readonly id: string;
  readonly secret: string;
}

type CellName = 'old' | 'new';

const path = join(temporaryFolder(), 'cells.json');
const env = { CUSTOS_MASTER_KEY: randomBytes(32).toString('hex'), CUSTOS_CELLS_FILE: path };

let urls: Record<CellName | 'directory', string>;
let servers: [TestProduction, TestProduction];

beforeAll(async () => {
  urls = { old: await freshPostgres(), new: await freshPostgres(), directory: await freshPostgres() };
  const directory = openCellDirectory(urls.directory, () => undefined);
  await directory.prepare();
  await directory.close();
  const cells = (['old', 'new'] as const).map((name) => ({ name, database_url: urls[name] }));
  writeFileSync(path, JSON.stringify({ directory_url: urls.directory, cells }));
  // The machine of the tests may be busy: requests are not refused because the event loop is late.
  const settings = { ...env, CUSTOS_MAX_DELAY_MS: '3000', CUSTOS_RATE_LIMIT: '0' };
  servers = [await startProduction(settings), await startProduction(settings)];
});
afterAll(async () => {
  for (const server of servers) await server.close();
});

/** Creates an app in the old cell. */
async function createApp(): Promise<App> {
  const { id, secret } = await administerApps({ kind: 'postgres', url: urls.old }).createApp('Acme');
  const directory = openCellDirectory(urls.directory, () => undefined);
  await directory.place({ app_id: id, cell: 'old' });
  await directory.close();
  return { id, secret };
}

interface Called {
  readonly status: number;
  readonly retryAfter: string | null;
  readonly body: { readonly id: string } & Record<string, unknown>;
}

async function call(
  { id, secret }: App,
  method: string,
  target: string,
  { body, headers, from = 0 }: { body?: object; headers?: Record<string, string>; from?: 0 | 1 } = {},
): Promise<Called> {
  const { baseUrl, proxied } = servers[from];
  const response = await fetch(`${baseUrl}${target}`, {
    method,
    headers: {
      ...{ ...proxied, 'service-app-id': id, 'content-type': 'application/json' },
      authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`,
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return {
    status: response.status,
    retryAfter: response.headers.get('retry-after'),
    body: (text === '' ? {} : JSON.parse(text)) as Called['body'],
  };
}

async function rows<Row extends object>(cell: CellName, sql: string, ...values: unknown[]): Promise<Row[]> {
  const client = new Client({ connectionString: urls[cell] });
  await client.connect();
  try {
    return (await client.query<Row>(sql, values)).rows;
  } finally {
    await client.end();
  }
}

const move = (app: App, options: { to?: CellName; onStep?: (step: MoveStep) => void | Promise<void> } = {}) =>
  moveApp({ appId: app.id, to: 'new', cells: readCells(env), ...options });

/** The cells in which the app can be used. */
async function cellsOf({ id }: App): Promise<CellName[]> {
  const found: CellName[] = [];
  for (const cell of ['old', 'new'] as const)
    if ((await rows(cell, 'select 1 from apps where id = $1', id)).length > 0) found.push(cell);
  return found;
}

async function populate(app: App): Promise<{ wallet: string; key: string; signature: string }> {
  const key = randomBytes(8).toString('hex');
  const made = await call(app, 'POST', '/v1/wallets', {
    ...{ body: { chain_type: 'ethereum' }, headers: { 'service-idempotency-key': key } },
  });
  expect(made.status).toBe(200);
  return { wallet: made.body.id, key, signature: await sign(app, made.body.id) };
}

async function sign(app: App, wallet: string): Promise<string> {
  const signed = await call(app, 'POST', `/v1/wallets/${wallet}/rpc`, {
    body: { method: 'personal_sign', params: { message: 'Hello', encoding: 'utf-8' } },
  });
  expect(signed).toMatchObject({ status: 200 });
  return (signed.body as unknown as { data: { signature: string } }).data.signature;
}

test('each table of the schema is moved with its app, or belongs to the database', async () => {
  const tables = await rows<{ name: string }>(
    'old',
    `select relname as name from pg_class where relnamespace = current_schema()::regnamespace
     and relkind in ('r', 'p') and not relispartition`,
  );
  // A new table needs a place in one of the two lists of src/storage/app-rows.ts.
  expect(tables.map(({ name }) => name).toSorted()).toEqual([...movedTables, ...stayingTables].toSorted());
  const owned = await rows<{ name: string }>(
    'old',
    `select table_name as name from information_schema.columns
     where column_name = 'app_id' and table_schema = current_schema() and table_name not like 'audit_%'`,
  );
  const forgotten = owned.filter(
    ({ name }) =>
      !movedTables.includes(name) &&
      !['app_moves', 'moved_rows'].includes(name) &&
      !/_(p\d+|default)$/.test(name),
  );
  expect(forgotten).toEqual([]);
});

test('under load, nothing acknowledged is lost or doubled, and the app goes on in the new cell', async () => {
  const app = await createApp();
  const neighbour = await createApp();
  const { wallet, key, signature } = await populate(app);
  const endpoint = await call(app, 'POST', '/v1/webhooks', { body: { url: 'https://hook.acme.example/' } });
  expect(endpoint.status).toBe(200);
  const acknowledged = { wallets: new Set<string>(), users: new Set<string>() };
  const refused: Called[] = [];
  let neighbourServed = 0;
  let isOver = false;
  let served = 0;
  const load = async (from: 0 | 1): Promise<void> => {
    while (!isOver) {
      const made = await call(app, 'POST', '/v1/wallets', { body: { chain_type: 'ethereum' }, from });
      if (made.status === 200) acknowledged.wallets.add(made.body.id);
      else refused.push(made);
      const address = `${randomBytes(8).toString('hex')}@acme.example`;
      const user = await call(app, 'POST', '/v1/users', {
        ...{ body: { linked_accounts: [{ type: 'email', address }] }, from },
      });
      if (user.status === 200) acknowledged.users.add(user.body.id);
      else refused.push(user);
      const read = await call(app, 'GET', `/v1/wallets/${wallet}`, { from });
      if (read.status === 200) served += 1;
      else refused.push(read);
    }
  };
  const besides = async (): Promise<void> => {
    while (!isOver) if ((await call(neighbour, 'GET', '/v1/wallets')).status === 200) neighbourServed += 1;
  };
  const work = [load(0), load(1), load(1), besides()];
  await expect.poll(() => served, { timeout: 30_000 }).toBeGreaterThan(10);
  const moved = await move(app, {
    async onStep(step) {
      if (step !== 'taken') return;
      // The app is refused, and the other app of its cell is not.
      const [before, refusedBefore] = [neighbourServed, refused.length];
      await expect.poll(() => neighbourServed, { timeout: 30_000 }).toBeGreaterThan(before);
      await expect.poll(() => refused.length, { timeout: 30_000 }).toBeGreaterThan(refusedBefore);
    },
  });
  expect(moved).toMatchObject({ app_id: app.id, from: 'old', to: 'new' });
  const servedBefore = served;
  await expect.poll(() => served, { timeout: 30_000 }).toBeGreaterThan(servedBefore + 10);
  isOver = true;
  await Promise.all(work);

  // Nothing else than 503 was said, such as that the wallet does not exist.
  expect(refused.filter(({ status, retryAfter }) => status !== 503 || retryAfter === null)).toEqual([]);
  expect(await cellsOf(app)).toEqual(['new']);
  const stored = new Set(
    (await rows<{ id: string }>('new', 'select id from wallets where app_id = $1', app.id)).map(
      ({ id }) => id,
    ),
  );
  expect([...acknowledged.wallets].filter((id) => !stored.has(id))).toEqual([]);
  const users = new Set(
    (await rows<{ id: string }>('new', 'select id from users where app_id = $1', app.id)).map(({ id }) => id),
  );
  expect([...acknowledged.users].filter((id) => !users.has(id))).toEqual([]);
  // Nothing is left in the old cell.
  for (const table of ['wallets', 'users', 'outbox_events', 'wallet_uses', 'idempotency_records'])
    expect(await rows('old', `select 1 from ${table} where app_id = $1`, app.id)).toEqual([]);
  expect(await rows('old', 'select 1 from moved_rows')).toEqual([]);
  expect((await rows('new', 'select 1 from wallet_keys')).length).toBe(stored.size);

  // Every event has one delivery, in the same order.
  await expect
    .poll(() => rows('new', 'select 1 from outbox_events where fanned_out_at_ms is null'), {
      timeout: 30_000,
    })
    .toEqual([]);
  const deliveries = await rows<{ event_id: string; count: string }>(
    'new',
    `select e.id as event_id, count(d.id) from outbox_events e
     left join webhook_deliveries d on d.event_sequence = e.sequence and d.event_id = e.id
     where e.app_id = $1 group by e.id having count(d.id) <> 1`,
    app.id,
  );
  expect(deliveries).toEqual([]);
  const order = await rows<{ isSorted: boolean }>(
    'new',
    `select bool_and(created_at_ms >= earlier) as "isSorted" from (
       select created_at_ms, lag(created_at_ms, 1, 0::bigint) over (partition by resource_id order by sequence) as earlier
       from outbox_events where app_id = $1) as events`,
    app.id,
  );
  expect(order).toEqual([{ isSorted: true }]);

  expect(await sign(app, wallet)).toBe(signature);
  const again = await call(app, 'POST', '/v1/wallets', {
    ...{ body: { chain_type: 'ethereum' }, headers: { 'service-idempotency-key': key } },
  });
  expect(again).toMatchObject({ status: 200, body: { id: wallet } });
  for (const cell of ['old', 'new'] as const) {
    await expect
      .poll(
        async () =>
          (
            await rows<{ entry: string }>(
              cell,
              `select entry from audit_records where app_id = $1 and entry like '%app.moved%'
               union all select entry from audit_pending where app_id = $1 and entry like '%app.moved%'`,
              app.id,
            )
          ).length,
        { timeout: 30_000 },
      )
      .toBe(1);
  }
});

/** Servers hear with their next heartbeat that an app has come back to a cell. */
async function whenServed(app: App, wallet: string): Promise<void> {
  await expect
    .poll(async () => (await call(app, 'GET', `/v1/wallets/${wallet}`)).status, { timeout: 30_000 })
    .toBe(200);
}

class Killed extends Error {}

/** Begins a move whose command is killed after a step. */
async function killedAfter(step: MoveStep, app: App): Promise<void> {
  const killed = move(app, {
    onStep: (done) => {
      if (done === step) throw new Killed();
    },
  });
  await expect(killed).rejects.toThrow(Killed);
}

test.for(['drained', 'taken', 'put', 'placed'] as const)(
  'a move that is killed when the app is %s continues, and the app is never in two cells',
  async (step) => {
    const app = await createApp();
    const { wallet, signature } = await populate(app);
    await killedAfter(step, app);
    expect((await cellsOf(app)).length).toBeLessThan(2);
    // While its rows are in the old cell, the app is served there again after some time.
    const expected = { drained: [200, 503], taken: [503], put: [503], placed: [200] }[step];
    expect(expected).toContain((await call(app, 'GET', `/v1/wallets/${wallet}`)).status);
    await move(app);
    expect(await cellsOf(app)).toEqual(['new']);
    expect(await sign(app, wallet)).toBe(signature);
    expect(await rows('old', 'select 1 from moved_rows where app_id = $1', app.id)).toEqual([]);
    await expect(move(app)).rejects.toThrow('is in the cell `new` already');
  },
);

test.for(['drained', 'taken'] as const)(
  'a move that was interrupted when the app was %s can be aborted, and made again',
  async (step) => {
    const app = await createApp();
    const { wallet, key, signature } = await populate(app);
    await killedAfter(step, app);
    await abortMove({ appId: app.id, cells: readCells(env) });
    expect(await cellsOf(app)).toEqual(['old']);
    await whenServed(app, wallet);
    expect(await sign(app, wallet)).toBe(signature);
    await move(app);
    expect(await cellsOf(app)).toEqual(['new']);
    // The new cell had refused the app. Its servers hear within a second that it has come after all.
    await expect
      .poll(async () => (await call(app, 'GET', `/v1/wallets/${wallet}`)).status, { timeout: 30_000 })
      .toBe(200);
    const again = await call(app, 'POST', '/v1/wallets', {
      ...{ body: { chain_type: 'ethereum' }, headers: { 'service-idempotency-key': key } },
    });
    expect(again).toMatchObject({ status: 200, body: { id: wallet } });
  },
);

test('after the rows are in the new cell, a move cannot be aborted', async () => {
  const app = await createApp();
  await killedAfter('put', app);
  await expect(abortMove({ appId: app.id, to: 'new', cells: readCells(env) })).rejects.toThrow(
    'is in the cell `new` already; repeat the move to finish it',
  );
  await move(app);
  expect(await cellsOf(app)).toEqual(['new']);
});

test('the new cell reads each chain from the earlier position, so that it misses no deposit', async () => {
  const app = await createApp();
  await populate(app);
  const evm = (block: number, place?: string) => JSON.stringify({ block: String(block), place, hashes: [] });
  const solana = (from: number, more: object = {}) =>
    JSON.stringify({ from, to: from + 5, isEnded: false, ...more });
  const waiting = { unfinished: [{ address: 'a', from: 3, to: 9, top: 9 }] };
  const positions: Record<string, { old: string; new?: string; expected: string }> = {
    'eip155:1': { old: evm(5), new: evm(9), expected: evm(5) },
    'eip155:2': { old: evm(10), new: evm(9), expected: evm(9) },
    'eip155:3': { old: evm(9, 'within'), new: evm(9), expected: evm(9, 'within') },
    'eip155:4': { old: evm(7), expected: evm(7) },
    'eip155:5': { old: evm(7), new: '', expected: evm(7) },
    'solana:1': { old: solana(8, waiting), new: solana(6), expected: '{"from":3,"to":3,"isEnded":true}' },
    'solana:2': { old: solana(6), new: solana(6), expected: solana(6) },
  };
  for (const [caip2, { old, new: known }] of Object.entries(positions)) {
    const insert = 'insert into chain_positions (caip2, position, leased_until_ms) values ($1, $2, 0)';
    await rows('old', insert, caip2, old);
    if (known !== undefined) await rows('new', insert, caip2, known);
  }
  await move(app);
  const found = await rows<{ caip2: string; position: string }>(
    'new',
    'select caip2, position from chain_positions',
  );
  expect(Object.fromEntries(found.map(({ caip2, position }) => [caip2, position]))).toEqual(
    Object.fromEntries(Object.entries(positions).map(([caip2, { expected }]) => [caip2, expected])),
  );
});

test('a cell that was restored from a backup from before the move keeps nothing of the app', async () => {
  const app = await createApp();
  const { wallet, signature } = await populate(app);
  const backup = await rows<{ row: string }>(
    'old',
    'select to_jsonb(apps)::text as row from apps where id = $1',
    app.id,
  );
  await move(app);
  await expect
    .poll(() => rows('old', 'select id from server_processes where drained_move <> 0'), { timeout: 30_000 })
    .toEqual([]);
  await rows('old', 'delete from app_moves where app_id = $1', app.id);
  await rows(
    'old',
    'insert into apps select * from jsonb_populate_record(null::apps, $1::jsonb)',
    backup[0]!.row,
  );
  const released = await runCommand(['restored', 'release', '--cell', 'old'], { env });
  expect(released).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`custos apps move ${app.id} --to new`),
  });
  const removed = await runCommand(['apps', 'move', app.id, '--to', 'new'], { env });
  expect(removed).toMatchObject({ code: 0, stdout: expect.stringContaining('old -> new, 0 rows') });
  expect(await cellsOf(app)).toEqual(['new']);
  expect(await sign(app, wallet)).toBe(signature);
});

test('an app can move back', async () => {
  const app = await createApp();
  const { wallet, signature } = await populate(app);
  await move(app);
  expect(await sign(app, wallet)).toBe(signature);
  await move(app, { to: 'old' });
  expect(await cellsOf(app)).toEqual(['old']);
  await whenServed(app, wallet);
  expect(await sign(app, wallet)).toBe(signature);
});

test('of two commands that move an app at once, one does it or both can be repeated', async () => {
  const app = await createApp();
  const { wallet, signature } = await populate(app);
  const results = await Promise.allSettled([move(app), move(app)]);
  for (const result of results)
    if (result.status === 'rejected') expect(result.reason).toHaveProperty('name', 'StartError');
  if (results.every(({ status }) => status === 'rejected')) await move(app);
  expect(await cellsOf(app)).toEqual(['new']);
  await whenServed(app, wallet);
  expect(await sign(app, wallet)).toBe(signature);
});

test('a command that was suspended does nothing when others have finished its move, and made new ones', async () => {
  const app = await createApp();
  const { wallet, signature } = await populate(app);
  const suspended = move(app, {
    async onStep(step) {
      if (step !== 'taken') return;
      await move(app);
      await move(app, { to: 'old' });
    },
  });
  await expect(suspended).rejects.toThrow('another command');
  expect(await cellsOf(app)).toEqual(['old']);
  await whenServed(app, wallet);
  expect(await sign(app, wallet)).toBe(signature);
  // Its last step must not delete the rows that a later move has taken.
  await move(app, {
    async onStep(step) {
      if (step !== 'placed') return;
      await move(app);
      await move(app, { to: 'old' });
      await killedAfter('taken', app);
    },
  });
  expect(await cellsOf(app)).toEqual([]);
  await move(app);
  await whenServed(app, wallet);
  expect(await sign(app, wallet)).toBe(signature);
});

test('an app moves back, and away again, although the last step of its first move is missing', async () => {
  const app = await createApp();
  const { wallet, signature } = await populate(app);
  await killedAfter('placed', app);
  await move(app, { to: 'old' });
  await move(app);
  expect(await cellsOf(app)).toEqual(['new']);
  await whenServed(app, wallet);
  expect(await sign(app, wallet)).toBe(signature);
  expect(await rows('old', 'select 1 from moved_rows where app_id = $1', app.id)).toEqual([]);
});

test('a command that aborts a move was killed between its steps: the next one aborts it', async () => {
  const app = await createApp();
  const { wallet, signature } = await populate(app);
  await killedAfter('taken', app);
  await rows(
    'new',
    `insert into app_moves (app_id, number, state, move_id, other_cell, changed_at_ms)
     values ($1, 0, 'refused', $2, 'old', 0)`,
    app.id,
    (await rows<{ move_id: string }>('old', 'select move_id from app_moves where app_id = $1', app.id))[0]!
      .move_id,
  );
  await expect(move(app)).rejects.toThrow('run the command again with --abort');
  await abortMove({ appId: app.id, to: 'new', cells: readCells(env) });
  await whenServed(app, wallet);
  expect(await sign(app, wallet)).toBe(signature);
});

test('a move to a cell that is lost for good is aborted with an empty database in its place', async () => {
  const app = await createApp();
  const { wallet, signature } = await populate(app);
  await killedAfter('taken', app);
  const cells = readCells(env);
  const inPlace = (databaseUrl: string) => {
    const [first, ...others] = cells.cells;
    const replaced = others.map((cell) => (cell.name === 'new' ? { ...cell, databaseUrl } : cell));
    return { ...cells, cells: [first, ...replaced] as const };
  };
  const dead = inPlace('postgresql://custos@127.0.0.1:1/custos');
  await expect(abortMove({ appId: app.id, cells: dead })).rejects.toThrow('cannot be reached');
  await abortMove({ appId: app.id, cells: inPlace(await freshPostgres()) });
  await whenServed(app, wallet);
  expect(await sign(app, wallet)).toBe(signature);
  await expect(abortMove({ appId: app.id, cells })).rejects.toThrow('is not on its way to another cell');
});

test('an aborted move places the app in the cell that has it, if the new cell has lost it', async () => {
  const app = await createApp();
  const { wallet, signature } = await populate(app);
  await killedAfter('taken', app);
  const directory = openCellDirectory(urls.directory, () => undefined);
  await directory.move({ app_id: app.id, from: 'old', to: 'new' });
  await abortMove({ appId: app.id, to: 'new', cells: readCells(env) });
  expect(await directory.find(app.id)).toBe('old');
  await directory.close();
  await whenServed(app, wallet);
  expect(await sign(app, wallet)).toBe(signature);
});

test('large rows are read in small batches, in their order', async () => {
  for (let position = 1; position <= 5; position += 1)
    await rows(
      'old',
      `insert into moved_rows (app_id, place, position, content) values ('large', 'policies', $1::bigint, $2 || repeat('x', 3000000))`,
      ...[position, String(position)],
    );
  const ask: Ask = <Row extends object>(sql: string, values: readonly unknown[] = []) =>
    rows<Row>('old', sql, ...values);
  const batches: string[][] = [];
  for await (const batch of takenRows(ask, 'large', 'policies'))
    batches.push(batch.map((content) => content.slice(0, 2)));
  await rows('old', `delete from moved_rows where app_id = 'large'`);
  expect(batches).toEqual([['1x', '2x'], ['3x', '4x'], ['5x']]);
});
