import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { aliceKey, bobKey } from '../../mocks/authorization-keys.ts';
import { operations } from '../../src/generated/operations.ts';
import type { Why } from '../../src/ports/request-recorder.ts';
import { attempt, type CallOptions, control, signRequest } from '../support/call.ts';
import { startSandbox, type TestSandbox } from '../support/sandbox.ts';
import { documentedOperations, exampleInput } from './documented-operations.ts';

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox({ hints: true });
});
afterAll(() => sandbox[Symbol.asyncDispose]());

interface Refusal {
  readonly error: string;
  readonly code?: string;
  readonly data?: { readonly hint?: string };
}

const alice = { wallet_id: 'ext_wal_alice' };
const treasury = { wallet_id: 'ext_wal_treasury' };
const rename = { display_name: 'Renamed' };
const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;

/** Refuses, and returns the hint with the kind and the evidence of the record. */
async function hintOf(id: keyof typeof operations, input: object, options: CallOptions = {}) {
  const { status, body, headers } = await attempt(sandbox, id, input, options);
  const { data } = body as Refusal;
  const { body: recorded } = await control(sandbox, 'GET', `/_sandbox/requests/${headers['x-request-id']}`);
  const why = recorded.why as Why;
  expect(why.hint).toBe(data?.hint);
  return { status, ...why };
}

/** A request that no operation describes. */
async function send(path: string, { method = 'GET' as 'GET' | 'POST' | 'DELETE', headers = {} } = {}) {
  const answer = await sandbox.dispatcher.request({
    ...{ origin: sandbox.baseUrl, path, method },
    headers: {
      authorization: basic(`${sandbox.appId}:${sandbox.appSecret}`),
      'service-app-id': sandbox.appId,
      ...headers,
    },
  });
  return { status: answer.statusCode, body: (await answer.body.json()) as Refusal };
}

describe('the hint of a refusal', () => {
  test('names the option for clients of another brand', async () => {
    const headers = { 'service-app-id': undefined, 'acme-app-id': sandbox.appId };
    expect(await hintOf('listWallets', {}, { headers })).toMatchObject({
      status: 400,
      kind: 'credentials',
      hint: expect.stringContaining('`--prefix acme`'),
      evidence: { sent_prefix: 'acme', prefix: 'service' },
    });
    const signed = { 'acme-authorization-signature': 'MEUCIQ==' };
    const { hint } = await hintOf('updateWallet', { path: alice, body: rename }, { headers: signed });
    expect(hint).toContain('`--prefix acme`');
  });

  test('says where the secret is shown', async () => {
    const headers = { authorization: basic(`${sandbox.appId}:wrong`) };
    expect(await hintOf('listWallets', {}, { headers })).toMatchObject({
      status: 401,
      kind: 'credentials',
      hint: expect.stringMatching(/prints its app id and secret at the start/),
      evidence: { app_id: sandbox.appId },
    });
  });

  test('shows two different app ids', async () => {
    const { evidence } = await hintOf('listWallets', {}, { headers: { 'service-app-id': 'other' } });
    expect(evidence).toEqual({ basic: sandbox.appId, header: 'other' });
  });

  test.each([
    ['GET', '/v1/walets', 'GET /v1/wallets'],
    ['GET', '/wallets/abc', 'GET /v1/wallets/{wallet_id}'],
    ['POST', '/v1/wallet/abc/rpc', 'POST /v1/wallets/{wallet_id}/rpc'],
    ['POST', '/v1/wallets/abc/raw-sign', 'POST /v1/wallets/{wallet_id}/raw_sign'],
  ] as const)('%s %s: did you mean %s?', async (method, path, nearest) => {
    const { status, body } = await send(path, { method });
    expect({ status, hint: body.data?.hint }).toEqual({
      status: 404,
      hint: `no operation has this path: did you mean ${nearest}?`,
    });
  });

  test('of a path that is like no other names none', async () => {
    const { body } = await send('/v1/entirely/different/things');
    expect(body.data?.hint).toBe('no operation has this path; /docs lists them all');
  });

  test('of a wrong method names the right ones', async () => {
    const { status, body } = await send('/v1/wallets', { method: 'DELETE' });
    expect({ status, hint: body.data?.hint }).toEqual({
      status: 405,
      hint: 'this path does not accept DELETE, only GET, HEAD, POST',
    });
  });

  test.each([
    [{ chain_tipe: 'ethereum' }, 'chain_tipe'],
    [{ chainType: 'ethereum' }, 'chainType'],
  ])('of a missing property names the misspelled one beside it: %j', async (body, nearest) => {
    expect(await hintOf('createWallet', { body })).toEqual({
      status: 400,
      kind: 'validation',
      hint: `the body has \`${nearest}\`: did you mean \`chain_type\`?`,
      evidence: { pointer: '/chain_type', nearest },
    });
  });

  test('of plain HTTP names the option', async () => {
    await using plain = await startSandbox({ hints: true, plainHttp: false, host: '127.0.0.1' });
    const url = plain.baseUrl.replace('https:', 'http:');
    const answer = await request(`${url}/v1/wallets`).catch(() => undefined);
    // A server with TLS answers plain HTTP on the same port.
    const body = (await answer?.body.json()) as Refusal;
    expect(body.data?.hint).toContain('`--plain-http`');
  });

  test('of a failed signature is the difference', async () => {
    const [path, body] = ['/v1/wallets/ext_wal_alice', rename];
    const headers = { 'service-app-id': sandbox.appId };
    const signature = signRequest(
      sandbox,
      { method: 'PATCH', target: `${path}/`, body },
      headers,
      aliceKey.privateKey,
    );
    const options = { headers: { 'service-authorization-signature': signature } };
    expect(await hintOf('updateWallet', { path: alice, body }, options)).toMatchObject({
      status: 401,
      kind: 'signature',
      hint: 'signature 1: the URL ended in a slash; everything else matches',
      evidence: { differs_in: 'url', public_key: aliceKey.publicKey },
    });
  });

  test('of too few signatures says how many are missing, and whose', async () => {
    const signWith = [aliceKey.privateKey, aliceKey.privateKey];
    expect(await hintOf('updateWallet', { path: treasury, body: rename }, { signWith })).toMatchObject({
      status: 401,
      kind: 'quorum',
      hint: expect.stringMatching(/^1 of 2 signatures count: 1 more of the owner/),
      evidence: { counted: 1, missing: 1, keys_not_signed: expect.arrayContaining([bobKey.publicKey]) },
    });
    const { kind, hint } = await hintOf('updateWallet', { path: treasury, body: rename });
    expect([kind, hint.slice(0, 25)]).toEqual(['signature', 'the request is not signed']);
  });

  test('of a policy names the condition and what it saw', async () => {
    const signWith = [aliceKey.privateKey, bobKey.privateKey];
    const transaction = {
      to: `0x${'11'.repeat(20)}`,
      value: '0x16345785d8a0001',
      chain_id: 1,
      type: 2,
      gas_limit: 21000,
      max_fee_per_gas: 1,
      max_priority_fee_per_gas: 1,
      nonce: 0,
    };
    const tooMuch = { method: 'eth_signTransaction', params: { transaction } };
    expect(await hintOf('walletRpc', { path: treasury, body: tooMuch }, { signWith })).toMatchObject({
      status: 400,
      kind: 'policy',
      hint: expect.stringContaining(
        'the rule `Transactions up to 0.1 ether` requires `ethereum_transaction.value` lte `100000000000000000`, and it is `100000000000000001`',
      ),
      evidence: { outcome: 'no_rule_matched' },
    });
  });

  test('of a reused idempotency key says so, and a repeated refusal has the hint of the first one', async () => {
    const idempotencyKey = 'once';
    const body = { chain_type: 'ethereum', policy_ids: ['x'.repeat(24)] };
    const first = await attempt(sandbox, 'createWallet', { body }, { idempotencyKey });
    const second = await attempt(sandbox, 'createWallet', { body }, { idempotencyKey });
    expect(second.headers['idempotent-replayed']).toBe('true');
    expect((first.body as Refusal).data?.hint).toMatch(/./);
    expect(second.body).toEqual(first.body);
    const other = await hintOf('createWallet', { body: { chain_type: 'solana' } }, { idempotencyKey });
    expect(other).toMatchObject({ status: 400, kind: 'idempotency' });
  });

  test('of an expired request shows both times', async () => {
    const expiryMs = sandbox.clock.now() - 1;
    const { kind, evidence } = await hintOf('listWallets', {}, { expiryMs });
    expect([kind, evidence]).toEqual(['validation', { expiry_ms: expiryMs, now_ms: sandbox.clock.now() }]);
  });

  test('uses the words of the clients', async () => {
    await using acme = await startSandbox({ hints: true, prefix: 'acme' });
    const { body } = await attempt(acme, 'listWallets', {}, { headers: { 'acme-app-id': undefined } });
    expect((body as Refusal).data?.hint).toContain('`acme-app-id`');
  });
});

test('one operation of each tag refuses wrong credentials and unknown resources with a hint that the document allows', async () => {
  const tags = new Set<string>();
  const missing: string[] = [];
  for (const operation of documentedOperations) {
    const { operationId: id } = operation;
    const { tag, security } = operations[id];
    if (tags.has(tag)) continue;
    tags.add(tag);
    const headers = { authorization: basic(`${sandbox.appId}:wrong`) };
    for (const options of security === 'none' ? [{}] : [{}, { headers }]) {
      const { status, body } = await attempt(sandbox, id, exampleInput(operation), options);
      if (status >= 400 && (body as Refusal).data?.hint === undefined) missing.push(`${id} ${status}`);
    }
  }
  expect(missing).toEqual([]);
});
