import { generateKeyPairSync } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { aliceKey, bobKey } from '../../../mocks/authorization-keys.ts';
import type { IntentResponse } from '../../../src/generated/schemas.ts';
import type {
  RecordedExchange,
  RecordedRequests,
  SentRequest,
} from '../../../src/sandbox/generated/schemas.ts';
import { call, refusal } from '../../support/call.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox[Symbol.asyncDispose]());
beforeEach(async () => void (await control('DELETE', '/requests')));

async function control<Body>(method: 'GET' | 'POST' | 'PUT' | 'DELETE', path: string, body?: unknown) {
  const answer = await sandbox.dispatcher.request({
    origin: sandbox.baseUrl,
    path: `/_sandbox${path}`,
    method,
    headers: body === undefined ? {} : { 'content-type': 'application/json' },
    body: body === undefined ? null : JSON.stringify(body),
  });
  return { status: answer.statusCode, body: (await answer.body.json()) as Body };
}

const send = async (body: unknown) => (await control<SentRequest>('POST', '/requests', body)).body;
const recorded = async () => (await control<RecordedRequests>('GET', '/requests')).body.data;

const hello = { method: 'personal_sign', params: { message: 'Hello', encoding: 'utf-8' } };
const alice = { wallet_id: 'ext_wal_alice' };

describe('a request that the control plane sends', () => {
  test('carries the credentials of the app and the named signatures', async () => {
    const sent = await send({ operation: 'walletRpc', path: alice, body: hello, sign_as: ['alice'] });
    expect(sent).toMatchObject({ status: 200, body: { method: 'personal_sign' } });
    const same = await call(
      sandbox,
      'walletRpc',
      { path: alice, body: hello as never },
      { signWith: [aliceKey.privateKey] },
    );
    expect(sent.body).toEqual(same.body);
    const [first] = await recorded();
    expect(first).toMatchObject({ id: sent.request_id, operation: 'walletRpc', app_id: sandbox.appId });
  });

  test('a request that the control plane sends signs its idempotency key and expiry, and its query', async () => {
    const headers = {
      'service-idempotency-key': 'once',
      'Service-Request-Expiry': String(sandbox.clock.now() + 60_000),
    };
    const request = { operation: 'walletRpc', path: alice, body: hello, headers, sign_as: ['alice'] };
    const [first, second] = [await send(request), await send(request)];
    expect([first.status, second.body]).toEqual([200, first.body]);
    const list = await send({ operation: 'listWallets', query: { limit: 1 } });
    expect((list.body as { data: unknown[] }).data).toHaveLength(1);
  });

  test('a request that the control plane sends is refused like that of a client, with the reason', async () => {
    const other = await send({ operation: 'walletRpc', path: alice, body: hello, sign_as: ['bob'] });
    expect(other).toMatchObject({ status: 401, body: { data: { signature_check: expect.anything() } } });
    const invalid = await send({ operation: 'createWallet', body: { chain_tipe: 'ethereum' } });
    expect(invalid).toMatchObject({ status: 400, body: { code: 'invalid_data' } });
    const anonymous = await send({ operation: 'listWallets', headers: { authorization: 'Basic x' } });
    expect(anonymous.status).toBe(401);
  });

  test('a request that the control plane sends leaves no record if that is wanted, and shows no secret', async () => {
    await send({ operation: 'listWallets', is_recorded: false });
    expect(await recorded()).toEqual([]);
    const endpoint = await send({
      operation: 'createWebhookEndpoint',
      body: { url: 'https://example.com/hook', event_types: ['wallet.archived'] },
    });
    expect(endpoint.status).toBeLessThan(300);
    expect(JSON.stringify(endpoint)).toContain('[removed]');
    expect(JSON.stringify(endpoint)).not.toContain('whsec_');
  });

  test('a request that the control plane sends is closed without a response where a fault rule says so', async () => {
    await control('POST', '/faults', { effect: 'cut_after_commit', operation: 'createWallet', count: 1 });
    expect(await send({ operation: 'createWallet', body: { chain_type: 'ethereum' } })).toEqual({
      request_id: null,
      status: 0,
      body: null,
    });
  });

  test.each([
    [{ operation: 'nothing' }, '/operation: expected an operation of the API, got `nothing`'],
    [{ operation: 'constructor' }, '/operation: expected an operation of the API, got `constructor`'],
    [{ operation: 'getWallet' }, '/path: expected `wallet_id`, got no such parameter'],
    [{ operation: 'getWallet', path: { wallet_id: '..' } }, '/path/wallet_id: expected an id, got `..`'],
  ])('a request that the control plane sends: %o is not sent', async (body, error) => {
    expect(await control('POST', '/requests', body)).toMatchObject({ status: 400, body: { error } });
    expect(
      (await control('POST', '/requests', { operation: 'getWallet', sign_as: ['mallory'] })).status,
    ).toBe(400);
    expect(await recorded()).toEqual([]);
  });
});

describe('a recorded request that is sent again', () => {
  async function refused(): Promise<string> {
    await refusal(
      sandbox,
      'walletRpc',
      { path: alice, body: hello },
      { signWith: [bobKey.privateKey], idempotencyKey: 'k1' },
    );
    return (await recorded()).at(-1)!.id;
  }

  test('a recorded request that is sent again has the same signatures, or those of the named keys', async () => {
    const id = await refused();
    const same = await control<SentRequest>('POST', `/requests/${id}/replay`, {});
    expect(same.body).toMatchObject({ status: 401 });
    expect((await control<RecordedExchange>('GET', `/requests/${same.body.request_id}`)).body).toMatchObject({
      signatures_sent: 1,
      request: { body: hello },
    });
    const signed = await control<SentRequest>('POST', `/requests/${id}/replay`, { sign_as: ['alice'] });
    expect(signed.body).toMatchObject({ status: 200, body: { method: 'personal_sign' } });
    const { request } = (await control<RecordedExchange>('GET', `/requests/${signed.body.request_id}`)).body;
    expect(request.headers.map(({ name }) => name)).not.toContain('service-idempotency-key');
    const unsigned = await control<SentRequest>('POST', `/requests/${id}/replay`, { sign_as: [] });
    expect(unsigned.body.status).toBe(401);
  });

  test('a recorded request that is sent again is executed, and not answered from its idempotency key', async () => {
    const { body: wallet } = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
    const body = {
      source: { asset: 'eth', amount: '0.2', chain: 'base' },
      destination: { address: `0x${'42'.repeat(20)}` },
    };
    const input = { path: { wallet_id: wallet.id }, body: body as never };
    await refusal(sandbox, 'transferFromWallet', input, { idempotencyKey: 'refused' });
    const { id } = (await recorded()).at(-1)!;
    const { why } = (await control<RecordedExchange>('GET', `/requests/${id}`)).body;
    const [first, , last] = why!.repairs;
    expect(first).toMatchObject({ operation: 'fundAddress', title: 'Add 0.2 ETH and gas' });
    expect(last).toMatchObject({ kind: 'repeat', title: 'Send the request again' });
    const funded = await control('POST', '/faucet', (first as { body: unknown }).body);
    expect(funded.body).toMatchObject({
      raw_amount: '200000000000000000',
      raw_balance: '300000000000000000',
    });
    const again = await control<SentRequest>('POST', `/requests/${id}/replay`, {});
    expect(again.body).toMatchObject({ status: 200, body: { type: 'transfer' } });
  });

  test('a refusal is not offered to be sent again if an unknown key signed its idempotency key', async () => {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const owner = { public_key: publicKey.export({ format: 'der', type: 'spki' }).toString('base64') };
    const { body: wallet } = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum', owner } });
    const input = {
      path: { wallet_id: wallet.id },
      body: {
        source: { asset: 'eth', amount: '0.2', chain: 'base' },
        destination: { address: `0x${'42'.repeat(20)}` },
      } as never,
    };
    const key = privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64');
    await refusal(sandbox, 'transferFromWallet', input, { signWith: [key], idempotencyKey: 'signed' });
    const { id } = (await recorded()).at(-1)!;
    const { why } = (await control<RecordedExchange>('GET', `/requests/${id}`)).body;
    expect(why?.repairs.map(({ kind }) => kind)).toEqual(['call', 'command']);
    expect(why?.hint).toMatch(/Call it again from your code: the client uses a new key\.$/);
  });

  test('a recorded request that is sent again has to be recorded', async () => {
    expect((await control('POST', '/requests/none/replay', {})).status).toBe(404);
    await using other = await startSandbox({ record: false });
    const answer = await other.dispatcher.request({
      origin: other.baseUrl,
      path: '/_sandbox/requests/none/replay',
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{}',
    });
    expect([answer.statusCode, await answer.body.json()]).toMatchObject([400, { code: 'invalid_state' }]);
  });
});

describe('the repair of a refused request', () => {
  const credentials = () => ({
    authorization: `Basic ${Buffer.from(`${sandbox.appId}:${sandbox.appSecret}`).toString('base64')}`,
    'service-app-id': sandbox.appId,
    'content-type': 'application/json',
  });

  /** Sends a request, and returns the repairs that send it again. */
  async function repeatsOf(
    path: string,
    { body, headers = {} }: { body: unknown; headers?: Record<string, string | undefined> },
  ) {
    const all = { ...credentials(), ...headers };
    const answer = await sandbox.dispatcher.request({
      ...{ origin: sandbox.baseUrl, path, method: 'POST' },
      headers: Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)) as Record<
        string,
        string
      >,
      body: JSON.stringify(body),
    });
    await answer.body.dump();
    const { id } = (await recorded()).at(-1)!;
    const { why } = (await control<RecordedExchange>('GET', `/requests/${id}`)).body;
    const repeats = why?.repairs.flatMap((each) => (each.kind === 'repeat' ? [each.repeat] : [])) ?? [];
    return { id, repeats };
  }

  async function repaired(path: string, request: Parameters<typeof repeatsOf>[1]) {
    const { id, repeats } = await repeatsOf(path, request);
    expect(repeats).toHaveLength(1);
    return (await control<SentRequest>('POST', `/requests/${id}/replay`, repeats[0])).body;
  }

  const wallet = { chain_type: 'ethereum' };

  test.each([
    ['a wrong secret', '/v1/wallets', { authorization: 'Basic bm86bm8=' }, wallet],
    ['another app in the header', '/v1/wallets', { 'service-app-id': 'other' }, wallet],
    ['the prefix of a brand', '/v1/wallets', { 'service-app-id': undefined, 'acme-app-id': 'x' }, wallet],
    ['another content type', '/v1/wallets', { 'content-type': 'text/plain' }, wallet],
    ['an expiry that has passed', '/v1/wallets', { 'service-request-expiry': '1767225500000' }, wallet],
    ['a misspelled path', '/v1/walets', {}, wallet],
    ['a path without version', '/wallets', {}, wallet],
    ['a misspelled property', '/v1/wallets', {}, { chainType: 'ethereum' }],
    ['a misspelled value', '/v1/wallets', {}, { chain_type: 'etherium' }],
    ['an unknown property', '/v1/wallets', {}, { ...wallet, colour: 'blue' }],
  ])(
    'the repair of %s sends it again with success',
    async (_, path, headers: Record<string, string | undefined>, body) => {
      const given = 'acme-app-id' in headers ? { ...headers, 'acme-app-id': sandbox.appId } : headers;
      expect(await repaired(path, { body, headers: given })).toMatchObject({
        status: 200,
        body: { chain_type: 'ethereum' },
      });
    },
  );

  test('a reused idempotency key is repaired by a new key', async () => {
    const headers = { 'service-idempotency-key': 'used' };
    await repeatsOf('/v1/wallets', { body: wallet, headers });
    const sent = await repaired('/v1/wallets', { body: { chain_type: 'solana' }, headers });
    expect(sent).toMatchObject({ status: 200, body: { chain_type: 'solana' } });
  });

  test('the signature of another key is repaired by that of the owner', async () => {
    await refusal(sandbox, 'walletRpc', { path: alice, body: hello }, { signWith: [bobKey.privateKey] });
    const { id } = (await recorded()).at(-1)!;
    const { why } = (await control<RecordedExchange>('GET', `/requests/${id}`)).body;
    expect(why).toMatchObject({
      docs: '/docs/errors/zero_correct_authorization_signatures',
      repairs: [{ kind: 'repeat', title: 'Sign again as Alice, the owner', repeat: { sign_as: ['alice'] } }],
    });
    const sent = await control<SentRequest>('POST', `/requests/${id}/replay`, { sign_as: ['alice'] });
    expect(sent.body.status).toBe(200);
  });

  test('a changed request that a seeded key signed is signed again with the same key', async () => {
    const options = { signWith: [aliceKey.privateKey], expiryMs: sandbox.clock.now() - 1 };
    await refusal(sandbox, 'walletRpc', { path: alice, body: hello }, options);
    const { id } = (await recorded()).at(-1)!;
    const changes = { fresh_expiry: true, body: [{ op: 'replace', path: '/params/message', value: 'Bye' }] };
    const sent = await control<SentRequest>('POST', `/requests/${id}/replay`, { changes });
    expect(sent.body).toMatchObject({ status: 200 });
    const seen = await control<RecordedExchange>('GET', `/requests/${sent.body.request_id}`);
    expect(seen.body).toMatchObject({
      authorized_by: [aliceKey.publicKey],
      request: { body: { params: { message: 'Bye' } } },
    });
  });

  test.each([
    [{ op: 'remove', path: '/nothing' }, '/changes/body/0: expected a value to remove, got none'],
    [{ op: 'move', from: '/a', path: '/b' }, '/changes/body/0: expected a value at `/a`, got none'],
    [{ op: 'add', path: 'a', value: 1 }, '/changes/body/0: expected a JSON pointer, got `a`'],
  ])('the change %j is refused', async (change, error) => {
    const { id } = await repeatsOf('/v1/wallets', { body: {} });
    const answer = await control('POST', `/requests/${id}/replay`, { changes: { body: [change] } });
    expect(answer).toMatchObject({ status: 400, body: { error } });
  });
});

test('an intent collects the signatures of its members until it is executed', async () => {
  const treasury = { wallet_id: 'ext_wal_treasury' };
  const { body: intent } = await call(sandbox, 'createWalletRpcIntent', {
    path: treasury,
    body: hello as never,
  });
  const sign = async (name: string) =>
    (await control<SentRequest>('POST', `/intents/${intent.intent_id}/sign`, { sign_as: name })).body;
  expect((await sign('alice')).body).toMatchObject({ status: 'pending' });
  expect((await sign('bob')).status).toBe(200);
  const { body: ended } = await call(sandbox, 'getIntent', { path: { intent_id: intent.intent_id } });
  expect((ended as IntentResponse).status).toBe('executed');
  expect((await control<SentRequest>('POST', '/intents/none/sign', { sign_as: 'alice' })).body.status).toBe(
    404,
  );
  expect((await control('POST', '/intents/none/sign', { sign_as: 'mallory' })).status).toBe(400);
});
