import { createPrivateKey, generateKeyPairSync, sign } from 'node:crypto';
import canonicalize from 'canonicalize';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { aliceKey, bobKey, carolKey } from '../../../mocks/authorization-keys.ts';
import type { CreateWalletRequest } from '../../../src/generated/schemas.ts';
import { call, refusal, signRequest } from '../../support/call.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

const publicUrl = 'https://wallets.example.com/tenant';
let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox({ publicUrls: [publicUrl] });
});
afterAll(() => sandbox[Symbol.asyncDispose]());

const message = { method: 'personal_sign', params: { encoding: 'utf-8', message: 'hello' } } as const;
const [alice, bob, carol] = [aliceKey.privateKey, bobKey.privateKey, carolKey.privateKey];

const newWallet = async (input: Omit<CreateWalletRequest, 'chain_type'>) =>
  (await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum', ...input } })).body;
const newQuorum = async (keys: { publicKey: string }[], threshold: number) =>
  (
    await call(sandbox, 'createKeyQuorum', {
      body: { public_keys: keys.map((key) => key.publicKey), authorization_threshold: threshold },
    })
  ).body.id;
/** Status and code of an rpc call signed by these keys. */
const outcome = async (walletId: string, signWith: string[], headers = {}) => {
  const input = { path: { wallet_id: walletId }, body: message };
  const options = signWith.length === 0 ? { headers } : { signWith, headers };
  try {
    return (await call(sandbox, 'walletRpc', input, options)).status;
  } catch {
    const { status, body } = await refusal(sandbox, 'walletRpc', input, options);
    return `${status} ${body.code}`;
  }
};

describe('a wallet of two of two', () => {
  test('a wallet of two of two signs with both signatures', async () => {
    const { id } = await newWallet({ owner_id: await newQuorum([aliceKey, bobKey], 2) });
    expect(await outcome(id, [])).toBe('401 missing_or_empty_authorization_header');
    expect(await outcome(id, [], { 'service-authorization-signature': '' })).toBe(
      '401 missing_or_empty_authorization_header',
    );
    expect(await outcome(id, [alice])).toBe('401 incorrect_quantity_of_authorization_signatures');
    expect(await outcome(id, [alice, alice])).toBe('401 insufficient_correct_authorization_signatures');
    expect(await outcome(id, [alice, carol])).toBe('401 insufficient_correct_authorization_signatures');
    expect(await outcome(id, [carol, carol])).toBe('401 zero_correct_authorization_signatures');
    expect(await outcome(id, [alice, bob])).toBe(200);
    expect(await outcome(id, [bob, alice])).toBe(200);
  });
});

describe('a wallet of two of three', () => {
  test('a wallet of two of three signs with any two signatures, and with all of them', async () => {
    const { id } = await newWallet({ owner_id: await newQuorum([aliceKey, bobKey, carolKey], 2) });
    for (const keys of [
      [alice, bob],
      [carol, alice],
      [alice, bob, carol],
    ]) {
      expect(await outcome(id, keys)).toBe(200);
    }
    expect(await outcome(id, [carol])).toBe('401 incorrect_quantity_of_authorization_signatures');
  });
});

describe('the owner of a wallet', () => {
  const update = (id: string, body: object, signWith?: string[]) =>
    call(
      sandbox,
      'updateWallet',
      { path: { wallet_id: id }, body },
      signWith === undefined ? {} : { signWith },
    );
  const refuseUpdate = async (id: string, body: object, signWith?: string[]) => {
    const options = signWith === undefined ? {} : { signWith };
    const answer = await refusal(sandbox, 'updateWallet', { path: { wallet_id: id }, body }, options);
    return `${answer.status} ${answer.body.code}`;
  };

  test('the owner of a wallet is set without a signature, and replaced and removed with a signature of the current owner', async () => {
    const { id, owner_id: none } = await newWallet({});
    expect(none).toBeNull();
    const owned = (await update(id, { owner: { public_key: aliceKey.publicKey } })).body;
    const toBob = { owner: { public_key: bobKey.publicKey } };
    expect(await refuseUpdate(id, toBob)).toBe('401 missing_or_empty_authorization_header');
    expect(await refuseUpdate(id, toBob, [bob])).toBe('401 zero_correct_authorization_signatures');
    const handedOver = (await update(id, toBob, [alice])).body;
    expect(handedOver.owner_id).not.toBe(owned.owner_id);
    expect(await refuseUpdate(id, { owner: null }, [alice])).toBe(
      '401 zero_correct_authorization_signatures',
    );
    expect((await update(id, { owner: null }, [bob])).body.owner_id).toBeNull();
    expect((await update(id, { display_name: 'Free' })).body).toMatchObject({
      owner_id: null,
      display_name: 'Free',
    });
  });

  test('the owner of a wallet is the same key quorum for the same key', async () => {
    const first = await newWallet({ owner: { public_key: carolKey.publicKey } });
    const second = await newWallet({ owner: { public_key: carolKey.publicKey } });
    expect(second.owner_id).toBe(first.owner_id);
    const quorum = await call(sandbox, 'getKeyQuorum', { path: { key_quorum_id: first.owner_id ?? '' } });
    expect(quorum.body).toEqual({
      id: first.owner_id,
      display_name: null,
      authorization_threshold: 1,
      authorization_keys: [{ public_key: carolKey.publicKey, display_name: null }],
      user_ids: null,
    });
  });

  test('the owner of a wallet is the same key quorum for wallets of a new key that are created at once, and uses each of them', async () => {
    const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const der = publicKey.export({ format: 'der', type: 'spki' }).toString('base64');
    const key = privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64');
    const made = await Promise.all([1, 2, 3].map(() => newWallet({ owner: { public_key: der } })));
    expect(new Set(made.map(({ owner_id }) => owner_id)).size).toBe(1);
    for (const { id } of made) {
      expect(await outcome(id, [key])).toBe(200);
      expect(await outcome(id, [alice])).toBe('401 zero_correct_authorization_signatures');
    }
  });

  test('shares signing, but not ownership, with additional signers', async () => {
    const signer = await newQuorum([bobKey], 1);
    const { id } = await newWallet({
      owner: { public_key: aliceKey.publicKey },
      additional_signers: [{ signer_id: signer }],
    });
    expect(await outcome(id, [bob])).toBe(200);
    expect(await outcome(id, [alice])).toBe(200);
    expect(await outcome(id, [carol])).toBe('401 zero_correct_authorization_signatures');
    expect(await refuseUpdate(id, { display_name: 'Mine' }, [bob])).toBe(
      '401 zero_correct_authorization_signatures',
    );
  });
});

describe('a wallet without an owner', () => {
  test('a wallet without an owner signs for every caller with the secret; unneeded signatures are ignored', async () => {
    const { id } = await newWallet({});
    expect(await outcome(id, [])).toBe(200);
    expect(await outcome(id, [carol])).toBe(200);
    expect(await outcome(id, [], { 'service-authorization-signature': 'garbage, more garbage' })).toBe(200);
  });
});

describe('the request expiry', () => {
  const now = () => sandbox.clock.now();
  const rpc = async (walletId: string, options: object) => {
    const { status, body } = await refusal(
      sandbox,
      'walletRpc',
      { path: { wallet_id: walletId }, body: message },
      options,
    );
    return `${status} ${body.code}`;
  };

  test('the request expiry is checked first, even if no signature is required', async () => {
    const free = (await newWallet({})).id;
    const owned = (await newWallet({ owner: { public_key: aliceKey.publicKey } })).id;
    for (const id of [free, owned]) {
      for (const value of [String(now() - 1), 'tomorrow', '', '1e15', '-1']) {
        expect(await rpc(id, { headers: { 'service-request-expiry': value } })).toBe('400 request_expired');
      }
    }
    expect(await outcome(free, [], { 'service-request-expiry': String(now()) })).toBe(200);
  });

  test('the request expiry is part of the signed payload', async () => {
    const { id } = await newWallet({ owner: { public_key: aliceKey.publicKey } });
    const input = { path: { wallet_id: id }, body: message };
    const expiryMs = now() + 60_000;
    expect((await call(sandbox, 'walletRpc', input, { signWith: [alice], expiryMs })).status).toBe(200);
    for (const header of [undefined, String(expiryMs + 1)]) {
      const headers = { 'service-request-expiry': header };
      expect(await rpc(id, { signWith: [alice], expiryMs, headers })).toBe(
        '401 zero_correct_authorization_signatures',
      );
    }
    expect(
      await rpc(id, { signWith: [alice], headers: { 'service-request-expiry': String(expiryMs) } }),
    ).toBe('401 zero_correct_authorization_signatures');
  });

  test('the idempotency key is part of the signed payload as well', async () => {
    const { id } = await newWallet({ owner: { public_key: aliceKey.publicKey } });
    const input = { path: { wallet_id: id }, body: message };
    const options = { signWith: [alice], idempotencyKey: 'once' };
    expect((await call(sandbox, 'walletRpc', input, options)).status).toBe(200);
    const headers = { 'service-idempotency-key': 'twice' };
    expect(await rpc(id, { ...options, headers })).toBe('401 zero_correct_authorization_signatures');
  });
});

describe('the signed payload', () => {
  interface Sent {
    target: string;
    method?: string;
    body?: string;
    payload: object | string;
    raw?: boolean;
  }

  const appHeader = () => ({ 'service-app-id': sandbox.appId });
  /** Sends a request, signed over a payload that the test builds itself. */
  async function send({ target, method = 'POST', body, payload, raw = false }: Sent) {
    const text = typeof payload === 'string' ? payload : (canonicalize(payload) ?? '');
    const key = createPrivateKey({ key: Buffer.from(alice, 'base64'), format: 'der', type: 'pkcs8' });
    const dsaEncoding = raw ? 'ieee-p1363' : 'der';
    const answer = await sandbox.dispatcher.request({
      origin: sandbox.baseUrl,
      path: target,
      method: method as 'POST',
      headers: {
        authorization: `Basic ${Buffer.from(`${sandbox.appId}:${sandbox.appSecret}`).toString('base64')}`,
        ...appHeader(),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        'service-authorization-signature': sign('sha256', Buffer.from(text), { key, dsaEncoding }).toString(
          'base64',
        ),
      },
      body: body ?? null,
    });
    return { status: answer.statusCode, body: (await answer.body.json()) as Record<string, unknown> };
  }

  async function aliceWallet(externalId?: string) {
    const external = externalId === undefined ? {} : { external_id: externalId };
    const { id } = await newWallet({ owner: { public_key: aliceKey.publicKey }, ...external });
    const body = JSON.stringify(message);
    const payloadFor = (url: string, changes: object = {}) => ({
      version: 1,
      method: 'POST',
      url,
      body: message,
      headers: appHeader(),
      ...changes,
    });
    return { id, body, payloadFor, target: `/v1/wallets/${id}/rpc` };
  }

  test('the signed payload contains the URL as the client knows it: the host of the request or a public base URL', async () => {
    const { body, target, payloadFor } = await aliceWallet();
    for (const base of [sandbox.baseUrl, publicUrl]) {
      expect((await send({ target, body, payload: payloadFor(base + target) })).status).toBe(200);
    }
    for (const base of ['https://elsewhere.example.com', sandbox.baseUrl.replace('https', 'http'), '']) {
      expect((await send({ target, body, payload: payloadFor(base + target) })).status).toBe(401);
    }
  });

  test('the signed payload contains the path as sent, with the prefix `/api` and the external id', async () => {
    const { id, body, target, payloadFor } = await aliceWallet('signed-as-sent');
    const alias = `/api${target}`;
    const external = '/v1/wallets/ext_wal_signed-as-sent/rpc';
    for (const sent of [target, alias, external, `/api${external}`]) {
      for (const signed of [target, alias, external, `/api${external}`]) {
        const { status } = await send({ target: sent, body, payload: payloadFor(sandbox.baseUrl + signed) });
        expect([sent, signed, status]).toEqual([sent, signed, sent === signed ? 200 : 401]);
      }
    }
    expect(id).toMatch(/^[a-z][0-9a-z]{23}$/);
  });

  test('the signed payload covers the value of the body, not its spelling', async () => {
    const { body, target, payloadFor } = await aliceWallet();
    const payload = payloadFor(sandbox.baseUrl + target);
    const reordered =
      '{ "params": { "encoding": "utf-8", "message": "he\\u006clo" },\n "method": "personal_sign" }';
    expect((await send({ target, body: reordered, payload })).status).toBe(200);
    expect((await send({ target, body: body.replace('hello', 'hellp'), payload })).status).toBe(401);
    expect(
      (await send({ target, body, payload: payloadFor(sandbox.baseUrl + target, { body: '' }) })).status,
    ).toBe(401);
  });

  test('the signed payload covers version, method and headers', async () => {
    const { body, target, payloadFor } = await aliceWallet();
    const url = sandbox.baseUrl + target;
    for (const changes of [
      { version: 2 },
      { method: 'PUT' },
      { headers: {} },
      { headers: { 'service-app-id': 'another' } },
      { headers: { ...appHeader(), 'content-type': 'application/json' } },
    ]) {
      expect((await send({ target, body, payload: payloadFor(url, changes) })).status).toBe(401);
    }
  });

  test('the signed payload may represent an empty body in three ways', async () => {
    const spellings = [{ body: '' }, {}, { body: {} }];
    for (const spelling of spellings) {
      const id = await newQuorum([aliceKey], 1);
      const target = `/v1/key_quorums/${id}`;
      const payload = {
        version: 1,
        method: 'DELETE',
        url: sandbox.baseUrl + target,
        headers: appHeader(),
        ...spelling,
      };
      expect(await send({ target, method: 'DELETE', payload })).toEqual({
        status: 200,
        body: { success: true },
      });
    }
  });

  test('the signed payload may be signed in DER or as r || s', async () => {
    const { body, target, payloadFor } = await aliceWallet();
    const payload = payloadFor(sandbox.baseUrl + target);
    expect((await send({ target, body, payload, raw: true })).status).toBe(200);
  });

  test('the signed payload must be canonical', async () => {
    const { body, target, payloadFor } = await aliceWallet();
    const payload = JSON.stringify(payloadFor(sandbox.baseUrl + target));
    const answer = await send({ target, body, payload });
    expect(answer.status).toBe(401);
    const check = (answer.body.data as { signature_check: { signatures: unknown[] } }).signature_check;
    expect(check.signatures).toEqual([
      {
        index: 0,
        verified: false,
        encoding: 'der',
        reason: 'the payload was not sorted: version, method, url, body, headers; everything else matches',
        differs_in: 'serialisation',
        public_key: aliceKey.publicKey,
      },
    ]);
  });

  test('a body without a canonical form is refused with the reason', async () => {
    const { target } = await aliceWallet();
    const body = '{"method":"personal_sign","params":{"message":"\\ud800","encoding":"utf-8"}}';
    const answer = await send({ target, body, payload: 'x' });
    expect([answer.status, answer.body.code, answer.body.error]).toEqual([
      400,
      'invalid_data',
      expect.stringContaining('surrogate'),
    ]);
  });
});

describe('a refusal in the sandbox', () => {
  test('a refusal in the sandbox shows the expected payload, ready to be signed', async () => {
    const { id } = await newWallet({ owner: { public_key: aliceKey.publicKey } });
    const input = { path: { wallet_id: id }, body: message };
    const refused = await refusal(sandbox, 'walletRpc', input, { signWith: [bob] });
    const { signature_check: check } = refused.body.data as {
      signature_check: { expected_payloads: string[]; parties: unknown[] };
    };
    expect(check.parties).toEqual([
      {
        role: 'owner',
        key_quorum_id: expect.any(String),
        authorization_threshold: 1,
        counted: 0,
        missing: 1,
        public_keys: [{ public_key: aliceKey.publicKey, signed: false }],
        users: [],
        key_quorums: [],
      },
    ]);
    expect(JSON.stringify(refused.body)).not.toContain(sandbox.appSecret);
    for (const payload of check.expected_payloads) {
      const key = createPrivateKey({ key: Buffer.from(alice, 'base64'), format: 'der', type: 'pkcs8' });
      const signature = sign('sha256', Buffer.from(payload), key).toString('base64');
      const headers = { 'service-authorization-signature': signature };
      expect((await call(sandbox, 'walletRpc', input, { headers })).status).toBe(200);
    }
  });

  test('more signatures than a quorum can have members are refused', async () => {
    const { id } = await newWallet({ owner: { public_key: aliceKey.publicKey } });
    const input = { path: { wallet_id: id }, body: message };
    const headers = { 'service-authorization-signature': 'MEUC,'.repeat(101) };
    const answer = await refusal(sandbox, 'walletRpc', input, { headers });
    expect([answer.status, answer.body.code, answer.body.error]).toEqual([
      400,
      'invalid_data',
      'service-authorization-signature: expected at most 100 signatures, got 101',
    ]);
  });
});

test('a client of another brand signs branded payloads', async () => {
  await using branded = await startSandbox({ prefix: 'acme' });
  const wallet = await call(branded, 'createWallet', {
    body: { chain_type: 'ethereum', owner: { public_key: aliceKey.publicKey } },
  });
  const input = { path: { wallet_id: wallet.body.id }, body: message };
  const options = { signWith: [alice], expiryMs: branded.clock.now() + 1000 };
  expect((await call(branded, 'walletRpc', input, options)).status).toBe(200);
  const neutral = signRequest(
    branded,
    { method: 'POST', target: `/v1/wallets/${wallet.body.id}/rpc`, body: message },
    { 'service-app-id': branded.appId },
    alice,
  );
  const headers = { 'acme-authorization-signature': neutral };
  expect((await refusal(branded, 'walletRpc', input, { headers })).status).toBe(401);
});
