import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { aliceKey, bobKey } from '../../../mocks/authorization-keys.ts';
import type { RecordedExchange, RecordedRequests } from '../../../src/sandbox/generated/schemas.ts';
import { call, refusal } from '../../support/call.ts';
import { fund } from '../../support/fund.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import { waitSeconds } from '../../support/wait-seconds.ts';

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox[Symbol.asyncDispose]());
beforeEach(async () => void (await control('', 'DELETE')));

const acme = { wallet_id: 'ext_wal_acme-ethereum' };
const alice = { wallet_id: 'ext_wal_alice' };

async function control<Body>(path: string, method: 'GET' | 'DELETE' = 'GET', on = sandbox) {
  const { statusCode, body } = await on.dispatcher.request({
    origin: on.baseUrl,
    path: `/_sandbox/requests${path}`,
    method,
  });
  return { status: statusCode, body: (await body.json()) as Body };
}

async function list(query = ''): Promise<RecordedRequests> {
  const { status, body } = await control<RecordedRequests>(`?${query}`);
  expect({ status, body }).toMatchObject({ status: 200 });
  return body;
}

async function last(): Promise<RecordedExchange> {
  const { id } = (await list()).data.at(-1)!;
  return (await control<RecordedExchange>(`/${id}`)).body;
}

const eventsOf = async (id: string) => (await control<RecordedExchange>(`/${id}`)).body.events;

const operations = ({ data }: RecordedRequests) => data.map(({ operation }) => operation);

describe('a recorded request', () => {
  test('a recorded request is shown with both messages, without credentials', async () => {
    const { body: wallet, headers } = await call(sandbox, 'createWallet', {
      body: { chain_type: 'ethereum' },
    });
    const recorded = await last();
    expect(recorded).toMatchObject({
      id: headers['x-request-id'],
      received_at_ms: Date.UTC(2026, 0, 1),
      method: 'POST',
      path: '/v1/wallets',
      operation: 'createWallet',
      app_id: sandbox.appId,
      wallet_id: wallet.id,
      status: 200,
      code: null,
      request: { body: { chain_type: 'ethereum' }, body_bytes: 25 },
      response: { body: wallet },
      policy_trace: null,
      why: null,
    });
    // The clock of the sandbox stands at 2026, that of the machine does not.
    expect(Math.abs(recorded.machine_received_at_ms - Date.now())).toBeLessThan(60_000);
    expect(recorded.request.headers).toContainEqual({ name: 'authorization', value: '[removed]' });
    expect(recorded.response.headers).toContainEqual({ name: 'x-request-id', value: recorded.id });
    const basic = Buffer.from(`${sandbox.appId}:${sandbox.appSecret}`).toString('base64');
    expect(JSON.stringify(recorded)).not.toContain(basic);
  });

  test('a recorded request has the present names of its wallet and its user, and of what it created', async () => {
    const { body: wallet } = await call(sandbox, 'createWallet', {
      body: { chain_type: 'ethereum', display_name: 'Till', external_id: 'till' },
    });
    const named = { id: wallet.id, address: wallet.address, chain_type: 'ethereum' };
    expect(await last()).toMatchObject({
      subject: { type: 'wallet', id: wallet.id, name: 'Till' },
      wallet: { ...named, name: 'Till' },
      user: null,
      caused_by: null,
    });
    await call(sandbox, 'updateWallet', {
      path: { wallet_id: 'ext_wal_till' },
      body: { display_name: 'Shop' },
    });
    const [created, renamed] = (await list()).data;
    expect([created!.wallet?.name, renamed!.wallet?.name]).toEqual(['Shop', 'Shop']);
    expect(renamed).toMatchObject({
      wallet_id: 'ext_wal_till',
      wallet: { ...named, name: 'Shop' },
      subject: { type: 'wallet', id: wallet.id, name: 'Shop' },
    });

    const { body: user } = await call(sandbox, 'createUser', {
      body: { linked_accounts: [{ type: 'email', address: 'carol@shop.example' }] },
    });
    const ofUser = { id: user.id, name: 'carol@shop.example' };
    expect(await last()).toMatchObject({ user: ofUser, subject: { type: 'user', ...ofUser }, wallet: null });
    await call(sandbox, 'getUser', { path: { user_id: user.id } });
    expect(await last()).toMatchObject({ user: ofUser });

    await refusal(sandbox, 'getWallet', { path: { wallet_id: 'zzzzzzzzzzzzzzzzzzzzzzzz' } });
    expect(await last()).toMatchObject({
      subject: { type: 'wallet', id: 'zzzzzzzzzzzzzzzzzzzzzzzz', name: null },
      wallet: null,
    });
    await call(sandbox, 'listWallets', {});
    expect(await last()).toMatchObject({ subject: null, wallet: null, user: null });
  });

  test('a request about a transaction names the request that sent it', async () => {
    const { body: wallet } = await call(sandbox, 'getWallet', { path: acme });
    await fund(sandbox, wallet.address, { chain: 'base', asset: 'eth', rawAmount: 10n ** 18n });
    const transaction = { to: wallet.address, value: 1 };
    await call(sandbox, 'walletRpc', {
      path: acme,
      body: { method: 'eth_sendTransaction', caip2: 'eip155:8453', params: { transaction } },
    });
    const sent = await last();
    expect(sent.caused_by).toBeNull();
    const [id] = sent.transaction_ids;
    await call(sandbox, 'getTransaction', { path: { transaction_id: id! } });
    expect(await last()).toMatchObject({
      subject: { type: 'transaction', id, name: null },
      caused_by: sent.id,
    });
  });

  test('a recorded request names the keys that authorized it, but not their signatures', async () => {
    const body = { display_name: 'Ours' };
    await call(sandbox, 'updateWallet', { path: alice, body }, { signWith: [aliceKey.privateKey] });
    const recorded = await last();
    expect(recorded).toMatchObject({ signatures_sent: 1, authorized_by: [aliceKey.publicKey] });
    expect(recorded.request.headers).toContainEqual({
      name: 'service-authorization-signature',
      value: '[removed]',
    });
  });

  test('a recorded request names the events and the transaction that it caused, also in a savepoint', async () => {
    const { body: wallet } = await call(sandbox, 'getWallet', { path: acme });
    await fund(sandbox, wallet.address, { chain: 'base', asset: 'eth', rawAmount: 10n ** 18n });
    const { body: sent } = await call(sandbox, 'walletRpc', {
      path: acme,
      body: {
        method: 'eth_sendTransaction',
        caip2: 'eip155:8453',
        params: { transaction: { to: wallet.address, value: 1 } },
      },
    });
    const { transaction_ids: transactions } = await last();
    expect(transactions).toEqual([(sent as { data: { transaction_id: string } }).data.transaction_id]);
    // What the chain does with it later is listed under the request, too.
    const { id: requestId } = await last();
    await waitSeconds(sandbox, 10);
    const later = await eventsOf(requestId);
    expect(later.map(({ type }) => type)).toContain('transaction.confirmed');
    expect(new Set(later.map(({ id }) => id)).size).toBe(later.length);

    const { body: mine } = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
    await call(sandbox, 'archiveWallet', { path: { wallet_id: mine.id } });
    const { events } = await last();
    expect(events).toEqual([{ id: expect.stringMatching(/^msg_/), type: 'wallet.archived' }]);

    const transfer = {
      source: { asset: 'eth', chain: 'base', amount: '0.001' },
      destination: { address: wallet.address },
    };
    await call(sandbox, 'transferFromWallet', { path: acme, body: transfer });
    const { id: transferId, events: begun } = await last();
    expect(begun[0]?.type).toBe('wallet_action.transfer.created');
    await waitSeconds(sandbox, 10);
    const ended = await eventsOf(transferId);
    expect(ended.map(({ type }) => type)).toContain('wallet_action.transfer.succeeded');
    expect(ended.slice(0, begun.length)).toEqual(begun);

    const users = [{ linked_accounts: [{ type: 'email' as const, address: 'a@b.example' }] }];
    await call(sandbox, 'batchCreateUsers', { body: { users } });
    expect((await last()).events).toMatchObject([{ type: 'user.created' }]);
  });

  test('calls of contracts in the body are decoded, also by uploaded interfaces', async () => {
    const { body: wallet } = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
    const to = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
    const send = async (data: string) => {
      await refusal(sandbox, 'walletRpc', {
        path: { wallet_id: wallet.id },
        body: {
          method: 'eth_sendTransaction',
          caip2: 'eip155:8453',
          params: { transaction: { to, data: `0x${data}` } },
        },
      });
      return (await last()).contract_calls;
    };
    // Source: ERC-20, transfer(address,uint256).
    const transfer = `a9059cbb${'42'.repeat(20).padStart(64, '0')}${'64'.padStart(64, '0')}`;
    expect(await send(transfer)).toMatchObject([
      {
        ...{ pointer: '/params/transaction', to },
        call: { name: 'transfer', arguments: [{ value: `0x${'42'.repeat(20)}` }, { value: '100' }] },
      },
    ]);
    // pause(bool)
    expect(await send(`02329a29${'1'.padStart(64, '0')}`)).toEqual([]);
    const abi = [{ type: 'function', name: 'pause', inputs: [{ name: 'isOn', type: 'bool' }] }];
    await sandbox.dispatcher.request({
      ...{ origin: sandbox.baseUrl, path: '/_sandbox/abis/pausable', method: 'PUT' },
      ...{ headers: { 'content-type': 'application/json' }, body: JSON.stringify({ abi }) },
    });
    expect((await last()).contract_calls).toMatchObject([
      { call: { name: 'pause', arguments: [{ name: 'isOn', type: 'bool', value: 'true' }] } },
    ]);
  });

  test('a body of many levels is shown without decoded calls', async () => {
    const deep = `${'['.repeat(5_000)}{"data":"0x12345678"}${']'.repeat(5_000)}`;
    await sandbox.dispatcher.request({
      ...{ origin: sandbox.baseUrl, path: '/v1/wallets', method: 'POST', body: deep },
      headers: { 'content-type': 'application/json' },
    });
    expect((await last()).contract_calls).toEqual([]);
  });

  test('a refusal has the trace of the policy that denied it, until a reset deletes the trace', async () => {
    const treasury = { wallet_id: 'ext_wal_treasury' };
    const rpc = { method: 'secp256k1_sign', params: { hash: `0x${'11'.repeat(32)}` } };
    const signWith = [aliceKey.privateKey, bobKey.privateKey];
    const denied = await refusal(sandbox, 'walletRpc', { path: treasury, body: rpc }, { signWith });
    expect(denied.body.code).toBe('policy_violation');
    const recorded = await last();
    expect(recorded).toMatchObject({
      code: 'policy_violation',
      policy_trace: { id: denied.body.data?.trace_id, decision: 'denied', request: rpc },
    });
    await sandbox.reset();
    const after = await control<RecordedExchange>(`/${recorded.id}`);
    expect(after.body).toEqual({ ...recorded, policy_trace: null });
  });

  test('a reset and a snapshot repeat no request ids, so an id names one request', async () => {
    const firstId = async (): Promise<string> => {
      await call(sandbox, 'getWallet', { path: acme });
      return (await last()).id;
    };
    const change = async (path: string, body: object) => {
      const answer = await sandbox.dispatcher.request({
        ...{ origin: sandbox.baseUrl, path: `/_sandbox${path}`, method: 'POST' },
        ...{ headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) },
      });
      await answer.body.dump();
      return answer.statusCode;
    };
    await sandbox.reset();
    expect(await change('/snapshots', { name: 'ids' })).toBe(200);
    const ids = [await firstId()];
    await sandbox.reset();
    ids.push(await firstId());
    expect(await change('/snapshots/ids/load', {})).toBe(200);
    ids.push(await firstId());
    expect(new Set(ids).size).toBe(3);
  });

  test('refused credentials and unknown paths are recorded too', async () => {
    await refusal(sandbox, 'getWallet', { path: acme }, { headers: { authorization: 'Basic bm86bm8=' } });
    expect(await last()).toMatchObject({ status: 401, code: 'invalid_app_credentials', app_id: null });
    const { body } = await sandbox.dispatcher.request({
      origin: sandbox.baseUrl,
      path: '/v1/walets',
      method: 'GET',
    });
    await body.dump();
    expect(await last()).toMatchObject({
      operation: null,
      path: '/v1/walets',
      code: 'missing_or_invalid_token',
    });
  });
});

describe('the log of requests', () => {
  test('the log of requests is filtered by operation, status, error code and wallet', async () => {
    const { body: wallet } = await call(sandbox, 'createWallet', { body: { chain_type: 'solana' } });
    await call(sandbox, 'getWallet', { path: { wallet_id: wallet.id } });
    await refusal(sandbox, 'createWallet', { body: { chain_type: 'gold' } });
    await refusal(sandbox, 'getWallet', { path: { wallet_id: 'x'.repeat(24) } });
    expect(operations(await list('operation=getWallet&operation=listUsers'))).toEqual([
      'getWallet',
      'getWallet',
    ]);
    expect(operations(await list('status=4xx'))).toEqual(['createWallet', 'getWallet']);
    expect(operations(await list('status=404'))).toEqual(['getWallet']);
    expect(operations(await list('code=invalid_data'))).toEqual(['createWallet']);
    expect(operations(await list(`wallet=${wallet.id}`))).toEqual(['createWallet', 'getWallet']);
    expect(operations(await list('wallet=unknown'))).toEqual([]);
  });

  test('the log of requests is read page by page, and from the position of a request', async () => {
    for (let index = 0; index < 5; index += 1) await call(sandbox, 'getWallet', { path: acme });
    const first = await list('limit=2');
    const rest = await list(`after=${first.cursor}`);
    expect([first.data.length, rest.data.length, rest.skipped]).toEqual([2, 3, 0]);
    expect((await list(`after=${first.data[1]!.id}`)).data).toEqual(rest.data);
    expect((await list('after=now')).data).toEqual([]);
    expect((await control('?after=00000000-0000-0000-0000-000000000000')).status).toBe(404);
    expect((await control('?after=soon')).status).toBe(400);
  });

  test('a reader waits for the next matching request, and no longer than it said', async () => {
    const waiting = list('after=now&operation=listWallets&wait_ms=20000');
    // The reader has to be waiting first; the order of requests on two connections is not fixed.
    await call(sandbox, 'getWallet', { path: acme });
    await call(sandbox, 'getWallet', { path: acme });
    await call(sandbox, 'listWallets', {});
    expect(operations(await waiting)).toEqual(['listWallets']);
    expect(await list('after=now&wait_ms=30')).toMatchObject({ data: [], began_anew: false });
  });

  test('deleting the requests begins a new log, and ends the wait of readers', async () => {
    await call(sandbox, 'getWallet', { path: acme });
    const { cursor } = await list();
    const waiting = list(`after=${cursor}&wait_ms=20000`);
    await call(sandbox, 'getWallet', { path: acme });
    await waiting;
    expect((await control('', 'DELETE')).body).toEqual({ deleted: 2 });
    expect(await list(`after=${cursor}&wait_ms=20000`)).toMatchObject({ data: [], began_anew: true });
  });

  test('the log of requests is exported as HTTP Archive 1.2', async () => {
    await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
    await call(sandbox, 'listWallets', { query: { chain_type: 'ethereum', limit: 1 } });
    await refusal(sandbox, 'createWallet', { body: {} });
    const { body } = await control<{ log: { entries: { request: object; response: object }[] } }>(
      '.har?limit=2',
    );
    expect(isArchive(body), JSON.stringify(isArchive.errors)).toBe(true);
    expect(body.log.entries).toMatchObject([
      {
        request: {
          method: 'GET',
          url: `${sandbox.baseUrl}/v1/wallets?chain_type=ethereum&limit=1`,
          queryString: [
            { name: 'chain_type', value: 'ethereum' },
            { name: 'limit', value: '1' },
          ],
        },
        response: { status: 200 },
      },
      {
        request: { method: 'POST', postData: { mimeType: 'application/json', text: '{}' } },
        response: { status: 400 },
      },
    ]);
    expect(JSON.stringify(body)).not.toContain('Basic ');
  });
});

test('without a record there is no log', async () => {
  await using other = await startSandbox({ record: false });
  await call(other, 'getWallet', { path: acme });
  for (const path of ['', '.har', '/00000000-0000-0000-0000-000000000000']) {
    const { status, body } = await control<{ code: string }>(path, 'GET', other);
    expect({ path, status, code: body.code }).toEqual({ path, status: 400, code: 'invalid_state' });
  }
});

// Required members by http://www.softwareishard.com/blog/har-12-spec/.
const text = { type: 'string' };
const number = { type: 'number' };
const pairs = {
  type: 'array',
  items: { type: 'object', required: ['name', 'value'], properties: { name: text, value: text } },
};
const message = { httpVersion: text, cookies: pairs, headers: pairs, headersSize: number, bodySize: number };
const object = (properties: object, optional: object = {}) => ({
  type: 'object',
  required: Object.keys(properties),
  properties: { ...properties, ...optional },
});
const ajv = new Ajv2020({ strict: false, validateSchema: false });
addFormats.default(ajv);
const isArchive = ajv.compile(
  object({
    log: object({
      version: { const: '1.2' },
      creator: object({ name: text, version: text }),
      entries: {
        type: 'array',
        items: object({
          startedDateTime: { type: 'string', format: 'date-time' },
          time: { type: 'number', minimum: 0 },
          request: object(
            { ...message, method: text, url: { type: 'string', format: 'uri' }, queryString: pairs },
            { postData: object({ mimeType: text, text }) },
          ),
          response: object({
            ...message,
            status: number,
            statusText: text,
            content: object({ size: number, mimeType: text }),
            redirectURL: text,
          }),
          cache: object({}),
          timings: object({ send: number, wait: number, receive: number }),
        }),
      },
    }),
  }),
);

test('headers that were set before the response are recorded with it', async () => {
  await using limited = await startSandbox({ rateLimit: { perSecond: 100, burst: 7 } });
  const { headers } = await call(limited, 'getWallet', { path: acme });
  const recorded = (await control<RecordedExchange>(`/${headers['x-request-id']}`, 'GET', limited)).body;
  const sent = Object.fromEntries(recorded.response.headers.map(({ name, value }) => [name, value]));
  const limits = [
    'x-ratelimit-limit',
    'x-ratelimit-remaining',
    'ratelimit',
    'cache-control',
    'content-length',
  ];
  expect(limits.map((name) => sent[name])).toEqual(limits.map((name) => headers[name]));
  expect(sent['x-ratelimit-limit']).toMatch(/^\d+$/);
});
