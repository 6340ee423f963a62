import { randomBytes } from 'node:crypto';
import { Client } from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { silentLog } from '../../../src/adapters/log.ts';
import { administerApps } from '../../../src/admin/administration.ts';
import {
  acceptRestored,
  type RestoreReport,
  releaseChanges,
  reportRestore,
} from '../../../src/admin/restored.ts';
import { readNodesConfig } from '../../../src/config/config.ts';
import type { Wallet } from '../../../src/generated/schemas.ts';
import type { Log } from '../../../src/ports/runtime.ts';
import { type Anvil, startAnvil } from '../../support/anvil.ts';
import { startProduction, type TestProduction } from '../../support/monitoring/production.ts';
import { freshPostgres } from '../../support/postgres/borrow-database.ts';

/*
 * A payment is made, the database is backed up before a second one, and a server starts on the backup. The chain, a
 * process of its own, has both payments.
 */

const shopAddress = '0x52908400098527886E0F7030069857D2E4169EE7';
const PRICE = 1_000n;
const keys = { CUSTOS_MASTER_KEY: randomBytes(32).toString('hex') };

let anvil: Anvil;
let url: string;
let backupUrl: string;
let app: { id: string; secret: string };
let shopper: Wallet;
let idler: Wallet;
let atBackup: readonly string[];

beforeAll(async () => {
  anvil = await startAnvil(8453);
  await anvil.ask('evm_setAutomine', true);
  url = await freshPostgres();
  app = await administerApps({ kind: 'postgres', url }).createApp('Globex');
  {
    await using server = await start(url);
    shopper = await createWallet(server);
    idler = await createWallet(server);
    expect(await pay(server, shopper, 'first')).toMatchObject({ status: 200 });
  }
  backupUrl = await copyOf(url);
  atBackup = [await noncesOf(shopper), await balanceOf(shopAddress)];
  await using server = await start(url);
  expect(await pay(server, shopper, 'second')).toMatchObject({ status: 200 });
});

afterAll(() => anvil[Symbol.asyncDispose]());

function start(database: string, log?: Log): Promise<TestProduction> {
  return startProduction(
    {
      ...keys,
      DATABASE_URL: database,
      CUSTOS_RPC: `eip155:8453=${anvil.url}`,
      CUSTOS_CONFIRMATIONS: 'eip155:8453=off',
    },
    log,
  );
}

/** A database with the same content, in the same cluster, as a dump that is loaded is. */
async function copyOf(source: string): Promise<string> {
  const { pathname } = new URL(source);
  const admin = new URL(source);
  admin.pathname = '/postgres';
  const client = new Client({ connectionString: admin.href });
  await client.connect();
  try {
    await client.query(`create database ${pathname.slice(1)}_backup template ${pathname.slice(1)}`);
  } finally {
    await client.end();
  }
  return `${source}_backup`;
}

async function call<Body>(
  { baseUrl, proxied }: TestProduction,
  method: string,
  path: string,
  { body, key }: { body?: object; key?: string } = {},
): Promise<{ status: number; retryAfter: string | null; body: Body }> {
  const response = await fetch(`${baseUrl}${path}`, {
    method,
    headers: {
      ...proxied,
      'service-app-id': app.id,
      authorization: `Basic ${Buffer.from(`${app.id}:${app.secret}`).toString('base64')}`,
      'content-type': 'application/json',
      ...(key === undefined ? {} : { 'service-idempotency-key': key }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const retryAfter = response.headers.get('retry-after');
  return { status: response.status, retryAfter, body: (await response.json()) as Body };
}

async function createWallet(server: TestProduction): Promise<Wallet> {
  const { body } = await call<Wallet>(server, 'POST', '/v1/wallets', { body: { chain_type: 'ethereum' } });
  await anvil.ask('anvil_setBalance', body.address, '0xde0b6b3a7640000');
  return body;
}

function pay(server: TestProduction, { id }: Wallet, key: string) {
  const transaction = { to: shopAddress, value: `0x${PRICE.toString(16)}` };
  const body = { method: 'eth_sendTransaction', caip2: 'eip155:8453', params: { transaction } };
  return call<{ error?: string; code?: string }>(server, 'POST', `/v1/wallets/${id}/rpc`, { body, key });
}

const noncesOf = async ({ address }: Wallet) =>
  (await anvil.ask('eth_getTransactionCount', address, 'pending')) as string;
const balanceOf = async (address: string) => (await anvil.ask('eth_getBalance', address, 'latest')) as string;

function report(): Promise<RestoreReport> {
  return reportRestore(
    { kind: 'postgres', url: backupUrl },
    readNodesConfig({}, { CUSTOS_RPC: `eip155:8453=${anvil.url}` }),
    () => undefined,
  );
}

test('a server on a restored database repeats no payment, and the report names what is in doubt', async () => {
  const config = { kind: 'postgres', url: backupUrl } as const;
  expect(atBackup).toEqual(['0x1', '0x3e8']);
  await using server = await start(backupUrl);

  // The client repeats the payment whose record is lost.
  expect(await pay(server, shopper, 'second')).toMatchObject({
    status: 503,
    body: { error: expect.stringContaining('restored from a backup') },
  });
  expect(await call(server, 'GET', `/v1/wallets/${shopper.id}`)).toMatchObject({ status: 200 });
  expect(await report()).toMatchObject({
    restore: { cause: 'copied', released_at: null, newest_record_at: expect.any(String) },
    accounts: {
      ahead: [
        { account: `eip155:8453:${shopper.address}`, wallet_id: shopper.id, known_nonce: 1, chain_nonce: 2 },
      ],
      unanswered: [],
      compared: 2,
      uncomparable: {},
    },
  });

  const metrics = async (): Promise<string> => (await fetch(`${server.adminUrl}/metrics`)).text();
  expect(await metrics()).toContain('\ncustos_changes_held 1\n');

  await releaseChanges(config, false);
  await expect.poll(async () => (await pay(server, idler, 'idle')).status, { timeout: 60_000 }).toBe(200);
  expect(await metrics()).toContain('\ncustos_changes_held 0\n');
  const refusal = {
    status: 400,
    body: {
      code: 'transaction_broadcast_failure',
      error: expect.stringContaining('an operator must accept'),
    },
  };
  expect(await pay(server, shopper, 'second')).toMatchObject(refusal);
  expect([await noncesOf(shopper), await balanceOf(shopAddress)]).toEqual(['0x2', '0xbb8']);

  // Once the operator has compared, the wallet pays again, but the lost request never does.
  await acceptRestored(config, [`eip155:8453:${shopper.address}`]);
  expect(await pay(server, shopper, 'second')).toMatchObject(refusal);
  expect(await pay(server, shopper, 'third')).toMatchObject({ status: 200 });
  expect([await noncesOf(shopper), await balanceOf(shopAddress)]).toEqual(['0x3', '0xfa0']);
  expect((await report()).accounts.ahead).toEqual([]);
});

test('the original database is not held', async () => {
  await using server = await start(url);
  expect(await pay(server, shopper, 'second')).toMatchObject({ status: 200 });
});

/** Runs statements in one transaction. */
async function inOne(database: string, statements: string): Promise<void> {
  const client = new Client({ connectionString: database });
  await client.connect();
  try {
    await client.query(`begin; ${statements}; commit`);
  } finally {
    await client.end();
  }
}

test('a schema that is dropped and loaded from a dump under a server repeats no request', async () => {
  const fresh = await freshPostgres();
  app = await administerApps({ kind: 'postgres', url: fresh }).createApp('Umbrella');
  await using server = await start(fresh);
  const create = async () => {
    const body = { chain_type: 'ethereum' };
    return call<Partial<Wallet> & { error?: string }>(server, 'POST', '/v1/wallets', { body, key: 'one' });
  };
  const first = await create();
  expect(first).toMatchObject({ status: 200 });

  await inOne(fresh, 'alter schema public rename to dropped; create schema public');
  const unavailable = { status: 503, retryAfter: expect.stringMatching(/^\d+$/) };
  expect(await call(server, 'GET', `/v1/wallets/${first.body.id}`)).toMatchObject(unavailable);
  expect(await create()).toMatchObject(unavailable);

  // As after a dump from before the request: the tables are others, and the record of the request is missing.
  await inOne(
    fresh,
    `drop schema public; alter schema dropped rename to public;
     create table public.loaded (like public.database_identity including all);
     insert into public.loaded select * from public.database_identity;
     drop table public.database_identity; alter table public.loaded rename to database_identity;
     delete from public.idempotency_records`,
  );
  const repeated: Awaited<ReturnType<typeof create>>[] = [];
  await expect
    .poll(
      async () => {
        const answer = await create();
        repeated.push(answer);
        return answer.body.error;
      },
      { timeout: 60_000 },
    )
    .toContain('restored from a backup');
  for (const answer of repeated) expect(answer).toMatchObject(unavailable);
  expect(await call(server, 'GET', `/v1/wallets/${first.body.id}`)).toMatchObject({ status: 200 });
});

/** Starts a server whose look at the identity of its database takes as long as the first rounds of the jobs. */
async function startSlowly(database: string): Promise<{ server: TestProduction; errors: string[] }> {
  const errors: string[] = [];
  const client = new Client({ connectionString: database });
  await client.connect();
  try {
    await client.query('begin; lock table restores in access exclusive mode');
    const starting = start(database, { ...silentLog, error: (_, message) => errors.push(message) });
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    await client.query('commit');
    return { server: await starting, errors };
  } finally {
    await client.end();
  }
}

test('no background work runs before the server knows whether its database was restored', async () => {
  const fresh = await freshPostgres();
  // Its record waits for a place in the log, which has no keys before the first start.
  await administerApps({ kind: 'postgres', url: fresh }).createApp('Initech');
  {
    const { server, errors } = await startSlowly(fresh);
    await using _ = server;
    expect(errors).toEqual([]);
  }
  const client = new Client({ connectionString: fresh });
  await client.connect();
  await client.query(`update database_identity set cluster = 'another';
    insert into outbox_events (id, app_id, type, payload, created_at_ms)
    values ('msg_1', 'acme', 'wallet.archived', '{}', 1)`);
  {
    const { server, errors } = await startSlowly(fresh);
    await using _ = server;
    expect(errors).toEqual(['the database was restored; see `custos restored report`']);
  }
  const { rows } = await client.query('select fanned_out_at_ms from outbox_events');
  await client.end();
  expect(rows).toEqual([{ fanned_out_at_ms: null }]);
});
