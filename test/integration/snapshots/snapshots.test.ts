import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32, gunzipSync, gzipSync } from 'node:zlib';
import Sqlite from 'better-sqlite3';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { aliceKey } from '../../../mocks/authorization-keys.ts';
import type { SandboxOptions } from '../../../src/compose/sandbox.ts';
import { call } from '../../support/call.ts';
import { fund } from '../../support/fund.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

const folder = mkdtempSync(join(tmpdir(), 'snapshots-'));
afterAll(() => rmSync(folder, { recursive: true }));

interface Answer {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

async function control(
  sandbox: TestSandbox,
  method: 'GET' | 'POST' | 'PUT' | 'DELETE',
  path: string,
  body?: object,
): Promise<Answer> {
  const answer = await sandbox.dispatcher.request({
    ...{ origin: sandbox.baseUrl, path: `/_sandbox${path}`, method },
    ...(body === undefined
      ? {}
      : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
  });
  return { status: answer.statusCode, body: (await answer.body.json()) as Answer['body'] };
}

const save = (sandbox: TestSandbox, name: string) => control(sandbox, 'POST', '/snapshots', { name });
const load = (sandbox: TestSandbox, name: string) => control(sandbox, 'POST', `/snapshots/${name}/load`);

async function createWallet(sandbox: TestSandbox): Promise<string> {
  return (await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } })).body.id;
}

async function walletIds(sandbox: TestSandbox): Promise<string[]> {
  return (await call(sandbox, 'listWallets', {})).body.data.map(({ id }) => id).sort();
}

const acme = { wallet_id: 'ext_wal_acme-ethereum' };

async function rawBalance(sandbox: TestSandbox): Promise<string> {
  const { body } = await call(sandbox, 'getWalletBalance', {
    path: acme,
    query: { chain: 'base', asset: 'eth' },
  });
  return body.balances[0]!.raw_value;
}

const places: [string, SandboxOptions][] = [
  ['in memory', {}],
  ['in a folder', { dataFolder: join(folder, 'data') }],
];

describe.each(places)('a snapshot %s', (_name, options) => {
  let sandbox: TestSandbox;
  beforeAll(async () => {
    sandbox = await startSandbox(options);
  });
  afterAll(() => sandbox?.close());

  test('brings back rows, chains, clock and the ids that follow', async () => {
    const { address } = (await call(sandbox, 'getWallet', { path: acme })).body;
    await fund(sandbox, address, { chain: 'base', asset: 'eth', rawAmount: 7n });
    const before = await createWallet(sandbox);
    await control(sandbox, 'PUT', '/clock', { advance_ms: 60_000 });
    const saved = await save(sandbox, 'funded');
    expect(saved).toMatchObject({
      status: 200,
      body: { name: 'funded', now_ms: Date.UTC(2026, 0, 1, 0, 1), version: expect.any(String) },
    });
    const [ids, next] = [await walletIds(sandbox), await createWallet(sandbox)];

    await fund(sandbox, address, { chain: 'base', asset: 'eth', rawAmount: 1n });
    await control(sandbox, 'PUT', '/clock', { advance_ms: 86_400_000, frozen: false });
    expect(await load(sandbox, 'funded')).toEqual({
      status: 200,
      body: { loaded: true, now_ms: Date.UTC(2026, 0, 1, 0, 1) },
    });
    expect(ids).toContain(before);
    expect(await walletIds(sandbox)).toEqual(ids);
    expect(await rawBalance(sandbox)).toBe('7');
    expect((await control(sandbox, 'GET', '/clock')).body).toMatchObject({ frozen: true });
    expect(await createWallet(sandbox)).toBe(next);
  });

  test('is listed, replaced and deleted', async () => {
    await save(sandbox, 'again');
    const { body } = await save(sandbox, 'again');
    const { data } = (await control(sandbox, 'GET', '/snapshots')).body as { data: { name: string }[] };
    expect(data.map(({ name }) => name)).toEqual(['again', 'funded']);
    expect(data[0]).toEqual(body);
    expect(await control(sandbox, 'DELETE', '/snapshots/again')).toEqual({
      status: 200,
      body: { deleted: true },
    });
    for (const [method, path] of [
      ['DELETE', '/snapshots/again'],
      ['POST', '/snapshots/again/load'],
      ['GET', '/snapshots/again/content'],
      ['POST', '/snapshots/..%2Fcustos.sqlite/load'],
      ['DELETE', '/snapshots/..%2Floading'],
    ] as const) {
      expect(await control(sandbox, method, path)).toMatchObject({ status: 404 });
    }
  });

  test('is not what a reset returns to, and survives one', async () => {
    const seeded = await startedWith(sandbox);
    await load(sandbox, 'funded');
    await sandbox.reset();
    expect(await walletIds(sandbox)).toEqual(seeded);
    expect((await load(sandbox, 'funded')).status).toBe(200);
    expect((await walletIds(sandbox)).length).toBe(seeded.length + 1);
  });

  test('contains everything that was acknowledged before', async () => {
    await sandbox.reset();
    const acknowledged: string[] = [];
    const creations = Array.from({ length: 20 }, async () => {
      acknowledged.push(await createWallet(sandbox));
    });
    await Promise.race(creations);
    const atSave = [...acknowledged];
    const [{ status }] = await Promise.all([save(sandbox, 'busy'), ...creations]);
    expect(status).toBe(200);
    await load(sandbox, 'busy');
    expect(atSave.length).toBeGreaterThan(0);
    expect(await walletIds(sandbox)).toEqual(expect.arrayContaining(atSave));
  });

  test('readers of the event log continue after the loaded events', async () => {
    await sandbox.reset();
    let users = 0;
    const create = () =>
      call(sandbox, 'createUser', {
        body: { linked_accounts: [{ type: 'email', address: `${users++}@example.com` }] },
      });
    await create();
    await save(sandbox, 'one-event');
    await create();
    const before = await control(sandbox, 'GET', '/events?after=start');
    await load(sandbox, 'one-event');
    const { body: user } = await create();
    const after = await control(sandbox, 'GET', `/events?after=${before.body.cursor}`);
    expect(before.body.data).toHaveLength(2);
    expect(after.body).toMatchObject({ began_anew: true, data: [{ payload: { user: { id: user.id } } }] });
    expect((await control(sandbox, 'GET', '/events?after=start')).body.data).toHaveLength(2);
  });

  async function startedWith(running: TestSandbox): Promise<string[]> {
    await running.reset();
    return walletIds(running);
  }
});

test('keys in a snapshot of another sandbox still sign', async () => {
  const [one, other] = [await startSandbox(), await startSandbox({ dataFolder: join(folder, 'other') })];
  const created = await call(one, 'createWallet', {
    body: { chain_type: 'ethereum', owner: { public_key: aliceKey.publicKey } },
  });
  await save(one, 'mine');
  const { body } = await control(one, 'GET', '/snapshots/mine/content');
  expect((await control(other, 'PUT', '/snapshots/theirs', body)).status).toBe(200);
  expect((await load(other, 'theirs')).status).toBe(200);
  const sign = () =>
    call(
      other,
      'walletRpc',
      {
        path: { wallet_id: created.body.id },
        body: { method: 'personal_sign', params: { message: 'Hello', encoding: 'utf-8' } },
      },
      { signWith: [aliceKey.privateKey] },
    );
  expect((await sign()).status).toBe(200);
  await other.close();

  const again = await startSandbox({ dataFolder: join(folder, 'other') });
  expect(await walletIds(again)).toContain(created.body.id);
  await again.close();

  const file = join(folder, 'mine.snapshot');
  writeFileSync(file, gunzipSync(Buffer.from(body.content as string, 'base64')));
  const loaded = await startSandbox({ load: file });
  await createWallet(loaded);
  await loaded.reset();
  expect(await walletIds(loaded)).toEqual(await walletIds(one));
  await Promise.all([one.close(), loaded.close()]);
});

describe('a file that is not a whole snapshot', () => {
  let sandbox: TestSandbox;
  let content: Buffer;
  const upload = (bytes: Buffer, name = 'odd') =>
    control(sandbox, 'PUT', `/snapshots/${name}`, { content: gzipSync(bytes).toString('base64') });

  beforeAll(async () => {
    sandbox = await startSandbox({ dataFolder: join(folder, 'odd') });
    await save(sandbox, 'whole');
    content = readFileSync(join(folder, 'odd', 'snapshots', 'whole.snapshot'));
  });
  afterAll(() => sandbox?.close());

  test.each<[string, (whole: Buffer) => Buffer, RegExp]>([
    ['cut off', (whole) => whole.subarray(0, -1), /torn: expected \d+ bytes, got \d+/],
    ['cut off in its header', (whole) => whole.subarray(0, 40), /torn: its header/],
    ['cut off at once', (whole) => whole.subarray(0, 5), /torn: it has 5 bytes/],
    ['changed in a database', (whole) => flipped(whole, whole.length - 10_000), /torn: a part of it/],
    ['changed in its header', (whole) => flipped(whole, 60), /torn: its header/],
    ['another file', () => Buffer.from('SQLite format 3\0'), /not a snapshot/],
  ])('is refused: %s', async (_name, damage, reason) => {
    const damaged = damage(content);
    expect(await upload(damaged)).toMatchObject({
      status: 400,
      body: { code: 'invalid_data', error: expect.stringMatching(reason) },
    });
    writeFileSync(join(folder, 'odd', 'snapshots', 'torn.snapshot'), damaged);
    expect(await load(sandbox, 'torn')).toMatchObject({
      status: 400,
      body: { code: 'invalid_state', error: expect.stringMatching(reason) },
    });
    await expect(startSandbox({ load: join(folder, 'odd', 'snapshots', 'torn.snapshot') })).rejects.toThrow(
      reason,
    );
  });

  test('a snapshot that is not compressed with gzip is refused', async () => {
    const { status, body } = await control(sandbox, 'PUT', '/snapshots/odd', { content: 'AAAA' });
    expect({ status, error: body.error }).toEqual({
      status: 400,
      error: expect.stringContaining('compressed with gzip'),
    });
  });

  test('a snapshot of another schema or app is refused with both named', async () => {
    const changed = (change: (header: Record<string, unknown>) => object) => rewritten(content, change);
    await upload(
      changed((header) => ({ ...header, version: '9.9.9', schema: { database: 999, chains: 1 } })),
    );
    expect(await load(sandbox, 'odd')).toMatchObject({
      status: 400,
      body: {
        code: 'invalid_state',
        error: expect.stringMatching(/version 9\.9\.9, with schema 999\.1; expected/),
      },
    });
    await upload(
      changed((header) => ({ ...header, state: { ...(header.state as object), appId: 'globex' } })),
    );
    expect((await load(sandbox, 'odd')).body.error).toContain('`globex`');
    expect((await upload(changed((header) => ({ ...header, format: 2 })))).body.error).toContain(
      'expected format 1, got 2',
    );
  });

  test.each(['', 'Upper', '../up', '.hidden', 'a'.repeat(65), 'with space'])(
    'the name `%s` is refused',
    async (name) => {
      expect(await save(sandbox, name)).toMatchObject({ status: 400, body: { code: 'invalid_data' } });
    },
  );

  test('there are at most 100', async () => {
    const { body } = await control(sandbox, 'GET', '/snapshots');
    const present = (body.data as unknown[]).length;
    for (let number = present; number < 100; number += 1) {
      writeFileSync(join(folder, 'odd', 'snapshots', `filler-${number}.snapshot`), '');
    }
    expect(await save(sandbox, 'too-many')).toMatchObject({
      status: 400,
      body: { code: 'invalid_state', error: expect.stringContaining('100 snapshots') },
    });
    expect((await upload(content, 'too-many')).body.code).toBe('invalid_state');
    expect((await save(sandbox, 'whole')).status).toBe(200);
  });
});

describe('a snapshot that is whole, but made by hand', () => {
  let sandbox: TestSandbox;
  let content: Buffer;
  let wallets: string[];
  const data = join(folder, 'hostile');
  beforeAll(async () => {
    sandbox = await startSandbox({ dataFolder: data });
    await save(sandbox, 'whole');
    content = readFileSync(join(data, 'snapshots', 'whole.snapshot'));
    wallets = await walletIds(sandbox);
  });
  afterAll(() => sandbox?.close());

  const state = (changes: object) => () =>
    rewritten(content, (header) => ({ ...header, state: { ...(header.state as object), ...changes } }));
  const entropy = { seed: 'x', drawn: 0 };
  const image = (change: (database: Sqlite.Database) => void) => () => withDatabase(content, change);
  const sql = (text: string) => image((database) => void database.exec(text));

  test.each<[string, () => Buffer, RegExp]>([
    ['a master key that is no key', state({ masterKeyHex: 'zz' }), /`state.masterKeyHex`/],
    ['another master key', state({ masterKeyHex: '11'.repeat(32) }), /its master key does not open it/],
    [
      'a clock beyond all dates',
      state({ clock: { frozenAtMs: 1e300, offsetMs: 0 } }),
      /`state.clock.frozenAtMs`/,
    ],
    ['a clock of text', state({ clock: { frozenAtMs: null, offsetMs: '1' } }), /`state.clock.offsetMs`/],
    ['no clock', state({ clock: undefined }), /`state.clock.frozenAtMs`/],
    ['no state', () => rewritten(content, ({ state: _, ...header }) => header), /`state.appId`/],
    ['a header that is a list', () => rewritten(content, () => []), /expected format 1, got undefined/],
    [
      'a stream that was drawn from for ever',
      state({ entropy: { main: { seed: 'x', drawn: 1e300 }, requests: entropy, faults: entropy } }),
      /`state.entropy.main.drawn`/,
    ],
    ['a table too many', sql('create table "x; drop table wallets" (a text)'), /its schema is not/],
    ['a column too many', sql('alter table wallets add column "hostile" text'), /its schema is not/],
    ['a table too few', sql('drop table wallets'), /its schema is not/],
    [
      'a trigger',
      sql('create trigger t after insert on wallets begin delete from apps; end'),
      /its schema is not/,
    ],
    ['a value of another type', sql("update wallets set created_at_ms = 'soon'"), /a row of `wallets`/],
    ['settings that are no JSON', sql("update apps set settings = '{'"), /`apps` has text in `settings`/],
    ['signers that are no JSON', sql("update wallets set additional_signers = ''"), /`additional_signers`/],
    ['bytes in place of text', sql("update wallets set address = x'00'"), /a row of `wallets`/],
    ['a torn page', () => withImage(content, (bytes) => bytes.fill(0xff, 8_192, 12_288)), /cannot be used/],
    ['no database', () => withImage(content, (bytes) => bytes.fill(0)), /cannot be used/],
  ])('is refused, and changes nothing: %s', async (_name, make, reason) => {
    const hostile = make();
    expect(
      await control(sandbox, 'PUT', '/snapshots/hostile', { content: gzipSync(hostile).toString('base64') }),
    ).toMatchObject({ status: 400, body: { code: 'invalid_data', error: expect.stringMatching(reason) } });
    writeFileSync(join(data, 'snapshots', 'put.snapshot'), hostile);
    expect(await load(sandbox, 'put')).toMatchObject({
      status: 400,
      body: { code: 'invalid_state', error: expect.stringMatching(reason) },
    });
    expect(await walletIds(sandbox)).toEqual(wallets);
    const start = { load: join(data, 'snapshots', 'put.snapshot'), dataFolder: join(folder, 'by-hand') };
    await expect(startSandbox(start)).rejects.toThrow(reason);
    expect(existsSync(start.dataFolder)).toBe(false);
  });

  test('that fails while it is loaded leaves the sandbox as it was, and its folder usable', async () => {
    const images = sandbox.database.images!;
    const { load: loadImage } = images;
    Object.assign(images, {
      load: async (image: Buffer) => {
        await loadImage(image);
        Object.assign(images, { load: loadImage });
        throw new Error('the disk is full');
      },
    });
    await createWallet(sandbox);
    wallets = await walletIds(sandbox);
    expect((await load(sandbox, 'whole')).status).toBe(500);
    expect(await walletIds(sandbox)).toEqual(wallets);
    const created = await createWallet(sandbox);
    await sandbox.close();
    sandbox = await startSandbox({ dataFolder: data });
    expect(await walletIds(sandbox)).toContain(created);
    expect(readdirSync(data)).not.toContain('loading.snapshot');
  });
});

test('a load that was interrupted by the end of the process is finished at the next start', async () => {
  const dataFolder = join(folder, 'killed');
  const sandbox = await startSandbox({ dataFolder });
  const kept = await createWallet(sandbox);
  await save(sandbox, 'kept');
  const lost = await createWallet(sandbox);
  await sandbox.close();
  const snapshot = readFileSync(join(dataFolder, 'snapshots', 'kept.snapshot'));
  // As a load begins, before it has replaced anything; and as it is while it is being written.
  for (const [name, expected] of [
    ['loading.snapshot.1', true],
    ['loading.snapshot', false],
  ] as const) {
    writeFileSync(join(dataFolder, name), snapshot);
    const again = await startSandbox({ dataFolder });
    const ids = await walletIds(again);
    expect(ids).toContain(kept);
    expect(ids.includes(lost)).toBe(expected);
    await again.close();
  }
  expect(existsSync(join(dataFolder, 'loading.snapshot'))).toBe(false);
});

test('snapshots that are loaded and replaced at the same time are whole, and leave no files', async () => {
  const dataFolder = join(folder, 'replaced');
  const sandbox = await startSandbox({ dataFolder });
  const stored = join(dataFolder, 'snapshots');
  await save(sandbox, 'state');
  await createWallet(sandbox);
  for (let round = 0; round < 3; round += 1) {
    const all = [save(sandbox, 'state'), load(sandbox, 'state'), load(sandbox, 'state')];
    expect((await Promise.all(all)).map(({ status }) => status)).toEqual([200, 200, 200]);
  }
  const ids = await walletIds(sandbox);
  expect(readdirSync(stored)).toEqual(['state.snapshot']);
  // As a process leaves it that is killed while it loads.
  writeFileSync(join(stored, 'state.1.taken'), 'taken');
  await sandbox.close();
  const again = await startSandbox({ dataFolder });
  expect(await walletIds(again)).toEqual(ids);
  expect(readdirSync(stored)).toEqual(['state.snapshot']);
  await again.close();
});

test('while a request does not end, nothing is saved, loaded or reset', async () => {
  const silent = createServer().listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const node = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  const rpc = [{ caip2: 'eip155:31337', urls: [node] }];
  const sandbox = await startSandbox({ drainMs: 50, rpc });
  await save(sandbox, 'before');
  const arrived = once(silent, 'request');
  const sending = call(sandbox, 'walletRpc', {
    path: acme,
    body: {
      ...{ method: 'eth_sendTransaction', caip2: 'eip155:31337' },
      params: { transaction: { to: `0x${'1'.repeat(40)}`, value: '0x1' } },
    },
  }).catch(() => undefined);
  await arrived;
  for (const path of ['/snapshots/before/load', '/reset']) {
    expect(await control(sandbox, 'POST', path)).toMatchObject({
      status: 503,
      body: { error: 'a request is still in progress after 50 ms; nothing was changed' },
    });
  }
  const [saved, id] = await Promise.all([save(sandbox, 'during'), createWallet(sandbox)]);
  expect(saved.status).toBe(503);
  expect(await walletIds(sandbox)).toContain(id);
  silent.closeAllConnections();
  silent.close();
  await sending;
  expect((await save(sandbox, 'after')).status).toBe(200);
  await sandbox.close();
});

test('a request that waited for a load has its credentials checked again', async () => {
  const sandbox = await startSandbox();
  const { body: app } = await control(sandbox, 'POST', '/apps', { name: 'Globex' });
  const headers = {
    authorization: `Basic ${Buffer.from(`${app.id}:${app.secret}`).toString('base64')}`,
    'service-app-id': app.id as string,
    'content-type': 'application/json',
  };
  const create = async () => {
    const answer = await sandbox.dispatcher.request({
      ...{ origin: sandbox.baseUrl, path: '/v1/wallets', method: 'POST', headers },
      body: JSON.stringify({ chain_type: 'ethereum' }),
    });
    await answer.body.dump();
    return answer.statusCode;
  };
  expect(await create()).toBe(200);
  const reset = sandbox.reset();
  const [status] = await Promise.all([create(), reset]);
  expect(status).toBe(401);
  await sandbox.close();
});

function flipped(bytes: Buffer, at: number): Buffer {
  const copy = Buffer.from(bytes);
  copy[at]! ^= 1;
  return copy;
}

/** The file with another header, and the checksum of that. */
function rewritten(file: Buffer, change: (header: Record<string, unknown>) => object): Buffer {
  const [fixed, end] = [file.subarray(0, 24), 24 + file.readUInt32BE(16)];
  const header = Buffer.from(JSON.stringify(change(JSON.parse(file.subarray(24, end).toString()))));
  const start = Buffer.from(fixed);
  start.writeUInt32BE(header.length, 16);
  start.writeUInt32BE(crc32(header), 20);
  return Buffer.concat([start, header, file.subarray(end)]);
}

/** The snapshot with other bytes of its database, and the checksum that belongs to them. */
function withImage(content: Buffer, change: (image: Buffer) => Buffer): Buffer {
  const end = 24 + content.readUInt32BE(16);
  const { database } = JSON.parse(content.subarray(24, end).toString('utf8')) as {
    database: { bytes: number };
  };
  const before = Buffer.from(content.subarray(end, end + database.bytes));
  const image = change(before);
  const whole = Buffer.concat([content.subarray(0, end), image, content.subarray(end + database.bytes)]);
  return rewritten(whole, (header) => ({
    ...header,
    database: { bytes: image.length, crc32: crc32(image) },
  }));
}

function withDatabase(content: Buffer, change: (database: Sqlite.Database) => void): Buffer {
  return withImage(content, (image) => {
    const database = new Sqlite(image);
    try {
      change(database);
      return database.serialize();
    } finally {
      database.close();
    }
  });
}
