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
