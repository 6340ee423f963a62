import { createPrivateKey, createSign, generateKeyPairSync } from 'node:crypto';
import canonicalize from 'canonicalize';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { aliceKey, bobKey } from '../../../mocks/authorization-keys.ts';
import { operations } from '../../../src/generated/operations.ts';
import type { Why } from '../../../src/ports/refusals.ts';
import { attempt, type CallOptions, call, control, signRequest } from '../../support/call.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import { documentedOperations, exampleInput } from '../every-operation/documented-operations.ts';

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
  test('the hint of a refusal names the encoding of a body that is not read', async () => {
    const hint = async (headers: Record<string, string>) =>
      (await hintOf('createWallet', { body: { chain_type: 'ethereum' } }, { headers })).hint;
    expect(await hint({ 'content-encoding': 'gzip' })).toContain('without the header `content-encoding`');
    const latin = { 'content-type': 'application/json; charset=iso-8859-1' };
    expect(await hint(latin)).toContain(
      '`application/json; charset=iso-8859-1`, which names another charset',
    );
    expect(await hint({ 'content-type': 'text/plain' })).toBe(
      'The header `content-type`: expected `application/json`, in UTF-8, got `text/plain`. Send `content-type: application/json` and the text as UTF-8.',
    );
  });

  test('the hint of a refusal names the option for clients of another brand', async () => {
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

  test('the hint of a refusal says where the secret is shown', async () => {
    const headers = { authorization: basic(`${sandbox.appId}:wrong`) };
    expect(await hintOf('listWallets', {}, { headers })).toMatchObject({
      status: 401,
      kind: 'credentials',
      hint: expect.stringMatching(/prints its app id and secret at the start/),
      evidence: { app_id: sandbox.appId },
    });
  });

  test('the hint of a refusal shows two different app ids', async () => {
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
      hint: `No operation has the path \`${path}\`. Did you mean ${nearest}?`,
    });
  });

  test('of a resource in the path has its id as the caller knows it, also if it was sent percent-encoded', async () => {
    const path = { user_id: 'did:service:cccccccccccccccccccccccc' };
    const encoded = await send(`/v1/users/${encodeURIComponent(path.user_id)}`);
    expect(encoded.body.data?.hint).toMatch(/^User `did:service:c{24}`: User not found; /);
    expect((await hintOf('getUser', { path })).hint).toBe(encoded.body.data?.hint);
  });

  test('of a path that is like no other names none', async () => {
    const { body } = await send('/v1/entirely/different/things');
    expect(body.data?.hint).toBe(
      'No operation has the path `/v1/entirely/different/things`. Look for the operation in /docs, which lists them all.',
    );
  });

  test('the hint of a refusal of a wrong method names the right ones', async () => {
    const { status, body } = await send('/v1/wallets', { method: 'DELETE' });
    expect({ status, hint: body.data?.hint }).toEqual({
      status: 405,
      hint: 'The path `/v1/wallets`: expected the method GET, HEAD or POST, got DELETE. Use GET, HEAD or POST, or another path; /docs lists the operations.',
    });
  });

  test.each([
    [{ chain_tipe: 'ethereum' }, 'chain_tipe'],
    [{ chainType: 'ethereum' }, 'chainType'],
  ])('of a missing property names the misspelled one beside it: %j', async (body, nearest) => {
    expect(await hintOf('createWallet', { body })).toMatchObject({
      status: 400,
      kind: 'validation',
      hint: `\`/chain_type\` is missing in the body, which has \`${nearest}\`. Did you mean \`chain_type\`?`,
      evidence: { pointer: '/chain_type', nearest },
    });
  });

  test('the hint of a refusal of plain HTTP names the option', async () => {
    await using plain = await startSandbox({ hints: true, plainHttp: false, host: '127.0.0.1' });
    const url = plain.baseUrl.replace('https:', 'http:');
    const answer = await request(`${url}/v1/wallets`).catch(() => undefined);
    // A server with TLS answers plain HTTP on the same port.
    const body = (await answer?.body.json()) as Refusal;
    expect(body.data?.hint).toContain('`--plain-http`');
  });

  test('the hint of a refusal of a failed signature is the difference', async () => {
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
      hint: expect.stringMatching(
        /^Signature 1, by key MFkw….* \(seeded as `alice`\): .* the URL ended in a slash; everything else matches\./,
      ),
      evidence: { differs_in: 'url', public_key: aliceKey.publicKey },
    });
  });

  test('of too few signatures says how many are missing, and whose', async () => {
    const signWith = [aliceKey.privateKey, aliceKey.privateKey];
    expect(await hintOf('updateWallet', { path: treasury, body: rename }, { signWith })).toMatchObject({
      status: 401,
      kind: 'quorum',
      hint: expect.stringMatching(
        /^Wallet Treasury \(`ext_wal_treasury`\) needs 2 signatures of its owner.* 1 of 2 sent counts.* Add 1 more by .*\(seeded as `bob`\)/,
      ),
      evidence: { counted: 1, missing: 1, keys_not_signed: expect.arrayContaining([bobKey.publicKey]) },
    });
    const { kind, hint } = await hintOf('updateWallet', { path: treasury, body: rename });
    expect([kind, hint.slice(0, 25)]).toEqual(['signature', 'The request is not signed']);
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
        'the rule `Transactions up to 0.1 ether` requires `ethereum_transaction.value` to be at most 0.1 ETH (`100000000000000000`), and it is 0.100000000000000001 ETH (`100000000000000001`)',
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

  test('the hint of a refusal of an expired request shows both times', async () => {
    const expiryMs = sandbox.clock.now() - 1;
    const { kind, evidence } = await hintOf('listWallets', {}, { expiryMs });
    expect([kind, evidence]).toEqual(['validation', { expiry_ms: expiryMs, now_ms: sandbox.clock.now() }]);
  });

  test('the hint of a refusal uses the words of the clients', async () => {
    await using acme = await startSandbox({ hints: true, prefix: 'acme' });
    const { body } = await attempt(acme, 'listWallets', {}, { headers: { 'acme-app-id': undefined } });
    expect((body as Refusal).data?.hint).toContain('`acme-app-id`');
  });
});

describe('the hint says what is wrong:', () => {
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
  const jwt = (claims: object, header: object = { alg: 'ES256', typ: 'JWT', kid: 'abc' }) =>
    `${[header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')}.c2ln`;
  const seconds = () => Math.floor(sandbox.clock.now() / 1000);
  const claims = () => ({
    iss: 'service.io',
    aud: sandbox.appId,
    sub: 'did:service:x',
    sid: 's',
    exp: seconds() + 60,
  });
  const authenticate = (user_jwt: string) => ({ body: { user_jwt } });

  test.each([
    [
      'app secret where a user is needed',
      'listCards',
      () => ({}),
      /expected a user's access token \(`Authorization: Bearer …`\), got the app secret/,
    ],
    [
      'garbage',
      'listCards',
      () => bearer('garbage'),
      /expected a JWT, three parts .*, got a malformed token/,
    ],
    ['three parts that are no JSON', 'listCards', () => bearer('a.b.c'), /got a malformed token/],
    [
      'a token of the own login',
      'listCards',
      () => bearer(jwt({ ...claims(), iss: 'https://login.example' })),
      /expected a token of this sandbox, whose `iss` is `service.io`, got one whose `iss` is `https:\/\/login.example`/,
    ],
    [
      'a token of another app',
      'listCards',
      () => bearer(jwt({ ...claims(), aud: 'other' })),
      /got one for the app `other`/,
    ],
    [
      'an expired token',
      'listCards',
      () => bearer(jwt({ ...claims(), exp: seconds() - 1 })),
      /expected one that is valid at .*, where the clock of the sandbox is .*, got one that has expired at /,
    ],
    [
      'an identity token',
      'listCards',
      () => bearer(jwt({ ...claims(), sid: undefined })),
      /got an identity token/,
    ],
    [
      'a wrong signature',
      'listCards',
      () => bearer(jwt(claims())),
      /signature does not verify under a key of this app/,
    ],
    [
      'any token at an operation of the app',
      'createPolicy',
      () => bearer(jwt(claims())),
      /got a user token, which this operation does not take\. Send the app id and secret/,
    ],
    ['another scheme', 'listWallets', () => ({ authorization: 'Digest x' }), /expected HTTP Basic/],
  ] as const)('credentials: %s', async (_, id, headers, hint) => {
    const input = exampleInput(documentedOperations.find(({ operationId }) => operationId === id)!);
    const answer = await hintOf(id, input, { headers: headers() });
    expect([answer.status, answer.kind]).toEqual([401, 'credentials']);
    expect(answer.hint).toMatch(hint);
  });

  test('an app that verifies no tokens', async () => {
    const created = await control(sandbox, 'POST', '/_sandbox/apps', { name: 'Plain' });
    const { id: appId, secret } = created.body as { id: string; secret: string };
    const headers = { 'service-app-id': appId, authorization: basic(`${appId}:${secret}`) };
    const { hint } = await hintOf('authenticateWallets', authenticate(jwt({ sub: 'x' })), { headers });
    expect(hint).toMatch(
      /Start the sandbox with `--jwt-key <file>`, or set `jwt_auth` by PUT \/_sandbox\/apps/,
    );
  });

  test.each([
    [
      'near spelling of a value',
      'createWallet',
      { chain_type: 'etherium' },
      /^`\/chain_type` in the body: expected one of ethereum, .*, got `etherium`\. Did you mean `ethereum`\?$/,
    ],
    [
      'a wrong type',
      'createWallet',
      { chain_type: 5 },
      /^`\/chain_type` in the body: expected a string, got the number 5\. Change `chain_type`;/,
    ],
    [
      'an owner who does not exist',
      'createWallet',
      { chain_type: 'ethereum', owner_id: 'x'.repeat(24) },
      /^`\/owner_id` in the body: no key quorum/,
    ],
  ] as const)('the hint says what is wrong: %s', async (_, id, body, hint) => {
    expect((await hintOf(id, { body })).hint).toMatch(hint);
  });

  test('a resource of another app, whose name stays unknown', async () => {
    const { body: policies } = await call(sandbox, 'listPolicies', {});
    const { id } = policies.data[0]!;
    const { body: users } = await call(sandbox, 'listUsers', {});
    const paths = [`/v1/policies/${id}`, `/v1/users/${users.data[0]!.id}`];
    const created = await control(sandbox, 'POST', '/_sandbox/apps', { name: 'Other' });
    const { id: appId, secret } = created.body as { id: string; secret: string };
    const headers = { authorization: basic(`${appId}:${secret}`), 'service-app-id': appId };
    for (const path of paths) {
      const { status, body } = await send(path, { headers });
      const hint = body.data?.hint ?? '';
      expect({ status, hint }).toEqual({ status: 404, hint: expect.stringContaining(path.split('/')[3]!) });
      // A known name stands before the id.
      expect(hint).toMatch(/^(?:Policy|User) `/);
    }
  });

  test('a query beyond its limit, a body that is not JSON', async () => {
    const { hint } = await hintOf('listWallets', { query: { limit: 1000 } });
    expect(hint).toBe(
      '`limit` in the query: Query limit can be at maximum 100 records. Change `limit`; /docs has examples.',
    );
    const answer = await sandbox.dispatcher.request({
      ...{ origin: sandbox.baseUrl, path: '/v1/wallets', method: 'POST', body: '{"a":' },
      headers: {
        ...{ authorization: basic(`${sandbox.appId}:${sandbox.appSecret}`), 'service-app-id': sandbox.appId },
        'content-type': 'application/json',
      },
    });
    const body = (await answer.body.json()) as Refusal;
    expect(body.data?.hint).toMatch(/^The body: broken JSON at line 1, column 6: expected /);
  });

  test('an expiry in seconds', async () => {
    const { hint } = await hintOf('listWallets', {}, { expiryMs: seconds() + 60 });
    expect(hint).toMatch(/which looks like seconds\. Send Unix milliseconds, such as \d{13}\./);
  });

  test('an unknown property at the control plane', async () => {
    const { status, body } = await control(sandbox, 'PUT', '/_sandbox/clock', { frozzen: true });
    expect([status, (body as unknown as Refusal).data?.hint]).toEqual([
      400,
      '`/frozzen` in the body: expected a property of the contract, got a name that the contract does not have. Remove `frozzen`, or check its spelling: GET /_sandbox/openapi.json lists the properties.',
    ]);
  });

  const path = '/v1/wallets/ext_wal_alice';
  const signedText = (text: string, key = aliceKey.privateKey) => {
    const pkcs8 = createPrivateKey({ key: Buffer.from(key, 'base64'), format: 'der', type: 'pkcs8' });
    return createSign('sha256').update(text).sign(pkcs8, 'base64');
  };
  const payload = () => ({
    version: 1,
    url: `${sandbox.baseUrl}${path}`,
    method: 'PATCH',
    headers: { 'service-app-id': sandbox.appId },
    body: rename,
  });
  const port = () => new URL(sandbox.baseUrl).port;
  const canonical = (value: object) => canonicalize(value)!;

  test.each([
    [
      '`JSON.stringify` in its own order',
      () => JSON.stringify(payload()),
      /members in the order version, url, method, headers, body: sign canonical JSON/,
    ],
    [
      'another order of the members',
      () => {
        const { version, url, method, headers, body } = payload();
        return JSON.stringify({ method, url, body, headers, version });
      },
      /members in the order method, url, body, headers, version: sign canonical JSON/,
    ],
    ['only the body', () => JSON.stringify(rename), /only the body was signed/],
    [
      'localhost',
      () => canonical({ ...payload(), url: `https://localhost:${port()}${path}` }),
      /the URL had the host `localhost` instead of `127.0.0.1:\d+`/,
    ],
    [
      'a container',
      () => canonical({ ...payload(), url: `http://custos:4010${path}` }),
      /the URL had the host `custos:4010`/,
    ],
  ])('a signature over %s', async (_, text, hint) => {
    const headers = { 'service-authorization-signature': signedText(text()) };
    const answer = await hintOf('updateWallet', { path: alice, body: rename }, { headers });
    expect(answer).toMatchObject({ status: 401, kind: 'signature', hint: expect.stringMatching(hint) });
  });

  test('a signature by a key of another party', async () => {
    const input = { path: alice, body: rename };
    const { hint } = await hintOf('updateWallet', input, { signWith: [bobKey.privateKey] });
    expect(hint).toMatch(
      /^Signed with key MFkw….* \(seeded as `bob`\), which is not an owner of wallet Alice \(`ext_wal_alice`\)\..* Its owner is key MFkw….* \(seeded as `alice`\) or user alice@example\.com \(`did:service:\w+`\)\. Sign with key /,
    );
    const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const spki = pair.publicKey.export({ format: 'der', type: 'spki' }).toString('base64');
    const quorum = { public_keys: [spki], authorization_threshold: 1, display_name: 'Ops' };
    const { body } = await attempt(sandbox, 'createKeyQuorum', { body: quorum });
    const pkcs8 = pair.privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64');
    const other = await hintOf('updateWallet', input, { signWith: [pkcs8] });
    expect(other.hint).toContain(
      `which is not an owner of wallet Alice (\`ext_wal_alice\`). It is a member of key quorum Ops (\`${(body as { id: string }).id}\`).`,
    );
  });

  test('too little of an asset: needed, present, and the command', async () => {
    const { body: wallet } = await attempt(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
    const { id, address } = wallet as { id: string; address: string };
    const to = `0x${'11'.repeat(20)}`;
    const send = (transaction: object) =>
      hintOf('walletRpc', {
        path: { wallet_id: id },
        body: { method: 'eth_sendTransaction', caip2: 'eip155:8453', params: { transaction } },
      });
    const native = await send({ to, value: '0x16345785d8a0000' });
    expect(native).toMatchObject({ status: 400, kind: 'chain' });
    expect(native.hint).toMatch(
      new RegExp(
        `^The balance of \`${address}\` on base: expected 0\\.1\\d* ETH, got 0 ETH\\. Run \`custos faucet ${address} 0\\.1\\d* --chain base --gas\`, which adds the rest and the gas for fees\\.$`,
      ),
    );
    const transfer = await hintOf('transferFromWallet', {
      path: { wallet_id: id },
      body: { source: { asset: 'usdc', chain: 'base', amount: '2.5' }, destination: { address: to } },
    });
    expect(transfer.hint).toBe(
      `The balance of \`${address}\` on base: expected 2.5 USDC, got 0 USDC. Run \`custos faucet ${address} 2.5 --chain base --asset usdc --gas\`, which adds the rest and the gas for fees.`,
    );
  });

  test('the terms of service that a user has not accepted', async () => {
    const { body: user } = await attempt(sandbox, 'createUser', {
      body: { linked_accounts: [{ type: 'email', address: 'terms@example.com' }] },
    });
    const user_id = (user as { id: string }).id;
    const submitted = documentedOperations.find(({ operationId }) => operationId === 'submitUserKyc')!;
    const { body: form } = exampleInput(submitted) as { body: object };
    await call(sandbox, 'submitUserKyc', { path: { user_id }, body: form as never });
    await control(sandbox, 'PUT', '/_sandbox/clock', { advance_ms: 5_000 });
    const query = { provider: 'bridge', environment: 'sandbox' } as const;
    await call(sandbox, 'listUserKyc', { path: { user_id }, query: query as never });
    const operation = documentedOperations.find(
      ({ operationId }) => operationId === 'createUserExternalFiatAccount',
    )!;
    const { hint } = await hintOf('createUserExternalFiatAccount', {
      path: { user_id },
      body: (exampleInput(operation) as { body: object }).body,
    });
    expect(hint).toContain('where `requirements_due` is `terms_of_service`');
    expect(hint).toContain(`POST /v1/users/${user_id}/kyc/tos returns the link`);
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
