import { generateKeyPairSync, type webcrypto } from 'node:crypto';
import { Chacha20Poly1305 } from '@hpke/chacha20poly1305';
import { CipherSuite, DhkemP256HkdfSha256, HkdfSha256 } from '@hpke/core';
import { createLocalJWKSet, type JSONWebKeySet, jwtVerify, SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { acmeApp } from '../../../mocks/apps.ts';
import { aliceKey, bobKey } from '../../../mocks/authorization-keys.ts';
import { call, refusal } from '../../support/call.ts';
import { configureUser } from '../../support/other-app.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

const login = generateKeyPairSync('rsa', { modulusLength: 2048 });
const message = { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } } as const;

let sandbox: TestSandbox;
beforeAll(async () => {
  const jwtPublicKeyPem = login.publicKey.export({ format: 'pem', type: 'spki' }).toString();
  sandbox = await startSandbox({ jwtPublicKeyPem });
});
afterAll(() => sandbox[Symbol.asyncDispose]());

/** A token of the app's own login: RS256, no kid, `sub` and `exp` alone. */
const tokenOf = (subject: string) =>
  new SignJWT({ sub: subject })
    .setProtectedHeader({ alg: 'RS256', typ: 'JWT' })
    .setExpirationTime(sandbox.clock.now() / 1000 + 3600)
    .sign(login.privateKey);
const newUser = async (customUserId: string) => {
  const account = { type: 'custom_auth', custom_user_id: customUserId } as const;
  return (await call(sandbox, 'createUser', { body: { linked_accounts: [account] } })).body.id;
};
const newWallet = async (owner: { user_id: string } | { owner_id: string }) => {
  const fields = 'user_id' in owner ? { owner } : owner;
  return (await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum', ...fields } })).body;
};
const bareKey = async (customUserId: string) => {
  const { body } = await call(sandbox, 'authenticateWallets', {
    body: { user_jwt: await tokenOf(customUserId) },
  });
  if (!('authorization_key' in body)) throw new Error('the key came sealed');
  return body;
};
const rpc = (walletId: string, signWith: string[]) =>
  call(sandbox, 'walletRpc', { path: { wallet_id: walletId }, body: message }, { signWith });
const refusedRpc = async (walletId: string, signWith: string[]) => {
  const input = { path: { wallet_id: walletId }, body: message };
  const { status, body } = await refusal(sandbox, 'walletRpc', input, { signWith });
  return `${status} ${body.code}`;
};

describe("a user's wallet", () => {
  test('signs for an hour with a key that was exchanged for a token', async () => {
    const userId = await newUser('u1');
    const wallet = await newWallet({ user_id: userId });
    expect(await refusedRpc(wallet.id, [bobKey.privateKey])).toBe('401 no_valid_user_session_keys');

    const first = await bareKey('u1');
    const second = await bareKey('u1');
    expect(first).toEqual({
      authorization_key: expect.any(String),
      expires_at: sandbox.clock.now() + 3_600_000,
      wallets: [wallet],
    });
    for (const { authorization_key: key } of [first, second])
      expect((await rpc(wallet.id, [key])).status).toBe(200);

    const start = sandbox.clock.now();
    sandbox.clock.advance(3_600_000);
    expect(await refusedRpc(wallet.id, [first.authorization_key])).toBe('401 user_session_keys_expired');
    sandbox.clock.set(start);
  });

  test('returns the key encrypted to a recipient, readable by published clients', async () => {
    const wallet = await newWallet({ user_id: await newUser('u2') });
    const suite = new CipherSuite({
      kem: new DhkemP256HkdfSha256(),
      kdf: new HkdfSha256(),
      aead: new Chacha20Poly1305(),
    });
    const pair = (await crypto.subtle.generateKey({ name: 'ECDH', namedCurve: 'P-256' }, true, [
      'deriveBits',
    ])) as webcrypto.CryptoKeyPair;
    const spki = Buffer.from(await crypto.subtle.exportKey('spki', pair.publicKey)).toString('base64');
    const body = {
      user_jwt: await tokenOf('u2'),
      encryption_type: 'HPKE',
      recipient_public_key: spki,
    } as const;
    for (const operation of ['authenticateWallets', 'authenticateUserSigner'] as const) {
      const answer = (await call(sandbox, operation, { body })).body;
      if (!('encrypted_authorization_key' in answer)) throw new Error('the key came bare');
      const { encapsulated_key: enc, ciphertext, encryption_type: type } = answer.encrypted_authorization_key;
      expect(type).toBe('HPKE');
      expect(Buffer.from(enc, 'base64')).toHaveLength(65);
      const recipient = await suite.createRecipientContext({
        recipientKey: pair.privateKey,
        enc: new Uint8Array(Buffer.from(enc, 'base64')),
      });
      const opened = await recipient.open(new Uint8Array(Buffer.from(ciphertext, 'base64')));
      expect((await rpc(wallet.id, [new TextDecoder().decode(opened)])).status).toBe(200);
    }
  });

  test('lists wallets the user owns, shares and signs for, the newest first', async () => {
    const userId = await newUser('u3');
    const own = await newWallet({ user_id: userId });
    const quorum = await call(sandbox, 'createKeyQuorum', {
      body: { user_ids: [userId], public_keys: [aliceKey.publicKey], authorization_threshold: 1 },
    });
    const outer = await call(sandbox, 'createKeyQuorum', {
      body: { key_quorum_ids: [quorum.body.id], public_keys: [bobKey.publicKey], authorization_threshold: 1 },
    });
    const shared = await newWallet({ owner_id: outer.body.id });
    const { body: signedFor } = await call(sandbox, 'createWallet', {
      body: { chain_type: 'ethereum', additional_signers: [{ signer_id: quorum.body.id }] },
    });
    await newWallet({ user_id: await newUser('another user') });
    const listed = (await bareKey('u3')).wallets.map((wallet) => wallet.id);
    expect(listed.toSorted()).toEqual([own.id, shared.id, signedFor.id].toSorted());
  });

  test('a member of a key quorum without wallets gets a key, which signs for the policies of that quorum', async () => {
    const userId = await newUser('member only');
    expect(
      (await refusal(sandbox, 'authenticateWallets', { body: { user_jwt: await tokenOf('member only') } }))
        .status,
    ).toBe(404);
    const { body: quorum } = await call(sandbox, 'createKeyQuorum', { body: { user_ids: [userId] } });
    const { body: policy } = await call(sandbox, 'createPolicy', {
      body: { version: '1.0', name: 'Owned', chain_type: 'ethereum', rules: [], owner_id: quorum.id },
    });
    const { authorization_key: key, wallets } = await bareKey('member only');
    expect(wallets).toEqual([]);
    const change = { path: { policy_id: policy.id }, body: { name: 'Renamed' } };
    expect((await refusal(sandbox, 'updatePolicy', change)).status).toBe(401);
    const { body: renamed } = await call(sandbox, 'updatePolicy', change, { signWith: [key] });
    expect(renamed.name).toBe('Renamed');
  });

  test('a quorum of a key and a user counts both', async () => {
    const userId = await newUser('u4');
    const quorum = async (threshold: number) =>
      (
        await call(sandbox, 'createKeyQuorum', {
          body: { user_ids: [userId], public_keys: [aliceKey.publicKey], authorization_threshold: threshold },
        })
      ).body.id;
    const both = await newWallet({ owner_id: await quorum(2) });
    const either = await newWallet({ owner_id: await quorum(1) });
    const { authorization_key: key } = await bareKey('u4');
    for (const keys of [[key], [aliceKey.privateKey], [key, aliceKey.privateKey]]) {
      expect((await rpc(either.id, keys)).status).toBe(200);
    }
    expect(await refusedRpc(both.id, [key])).toBe('401 incorrect_quantity_of_authorization_signatures');
    const second = (await bareKey('u4')).authorization_key;
    expect(await refusedRpc(both.id, [key, second])).toBe(
      '401 insufficient_correct_authorization_signatures',
    );
    expect((await rpc(both.id, [key, aliceKey.privateKey])).status).toBe(200);
  });

  test('a key bound to intents authorizes nothing else', async () => {
    const wallet = await newWallet({ user_id: await newUser('u5') });
    const proposed = (
      await call(sandbox, 'createWalletRpcIntent', { path: { wallet_id: wallet.id }, body: message })
    ).body;
    const bindings = [{ type: 'intent', intentId: proposed.intent_id }] as const;
    const nowhere = [...bindings, { type: 'intent', intentId: 'fmfdj6yqly31huorjqzq38zc' } as const];
    const refused = await refusal(sandbox, 'authenticateWalletIntents', {
      body: { user_jwt: await tokenOf('u5'), bindings: nowhere },
    });
    expect(refused).toMatchObject({
      status: 400,
      body: { code: 'invalid_data', error: '/bindings/1/intentId: no such intent in this app' },
    });
    const { body } = await call(sandbox, 'authenticateWalletIntents', {
      body: { user_jwt: await tokenOf('u5'), bindings: [...bindings] },
    });
    expect(body).toEqual({
      authorization_key: expect.any(String),
      bindings,
      expires_at: sandbox.clock.now() + 3_600_000,
      wallets: [wallet],
    });
    const key = 'authorization_key' in body ? body.authorization_key : '';
    expect(await refusedRpc(wallet.id, [key])).toBe('401 no_valid_user_session_keys');
  });

  test.each([
    ['not a token', async () => 'x', 401, 'missing_or_invalid_token'],
    ['a token of an unknown user', () => tokenOf('unknown'), 404, undefined],
    ['a token of a user without wallets', () => tokenOf('bob'), 404, undefined],
  ])('no key is issued for %s', async (_, token, status, code) => {
    const body = { user_jwt: await token() };
    const answer = await refusal(sandbox, 'authenticateWallets', { body });
    expect([answer.status, answer.body.code]).toEqual([status, code]);
  });

  test('a frozen user neither signs nor obtains a key, alone or in a nested quorum', async () => {
    const userId = await newUser('u6');
    const own = await newWallet({ user_id: userId });
    const inner = await call(sandbox, 'createKeyQuorum', {
      body: { user_ids: [userId], public_keys: [aliceKey.publicKey], authorization_threshold: 1 },
    });
    const outer = await call(sandbox, 'createKeyQuorum', {
      body: { key_quorum_ids: [inner.body.id], authorization_threshold: 1 },
    });
    const nested = await newWallet({ owner_id: outer.body.id });
    const { authorization_key: key } = await bareKey('u6');
    expect((await rpc(own.id, [key])).status).toBe(200);

    await configureUser(sandbox, userId, { frozen: true });
    expect(await refusedRpc(own.id, [key])).toBe('401 no_valid_user_session_keys');
    expect(await refusedRpc(nested.id, [key])).toBe('401 zero_correct_authorization_signatures');
    expect((await rpc(nested.id, [aliceKey.privateKey])).status).toBe(200);
    const body = { user_jwt: await tokenOf('u6') };
    const { body: intent } = await call(sandbox, 'createWalletRpcIntent', {
      path: { wallet_id: own.id },
      body: message,
    });
    const bindings = [{ type: 'intent', intentId: intent.intent_id }];
    for (const [operation, input] of [
      ['authenticateWallets', body],
      ['authenticateUserSigner', body],
      ['authenticateWalletIntents', { ...body, bindings }],
    ] as const) {
      expect(await refusal(sandbox, operation, { body: input })).toEqual({
        status: 401,
        body: { error: 'the user JWT is not valid: its user is frozen', code: 'missing_or_invalid_token' },
      });
    }

    await configureUser(sandbox, userId, { frozen: false });
    expect(await refusedRpc(own.id, [key])).toBe('401 no_valid_user_session_keys');
    expect((await rpc(own.id, [(await bareKey('u6')).authorization_key])).status).toBe(200);
  });

  test('no operation issues a key to an unknown user', async () => {
    const body = { user_jwt: await tokenOf('unknown') };
    const bindings = [{ type: 'intent', intentId: 'fmfdj6yqly31huorjqzq38zc' }];
    for (const [operation, input] of [
      ['authenticateWallets', body],
      ['authenticateUserSigner', body],
      ['authenticateWalletIntents', { ...body, bindings }],
    ] as const) {
      expect(await refusal(sandbox, operation, { body: input })).toEqual({
        status: 404,
        body: { error: 'User not found' },
      });
    }
  });

  test('no key is issued to an invalid recipient key', async () => {
    const body = { user_jwt: await tokenOf('u1'), encryption_type: 'HPKE', recipient_public_key: 'AAAA' };
    const answer = await refusal(sandbox, 'authenticateWallets', { body });
    expect(answer.body).toMatchObject({
      code: 'invalid_data',
      error: expect.stringMatching(/^\/recipient_public_key: /),
    });
  });
});

describe('a test account', () => {
  const credentials = async () =>
    (await call(sandbox, 'getAppTestCredentials', { path: { app_id: sandbox.appId } })).body.data;
  const keySet = async () => {
    const answer = await sandbox.dispatcher.request({
      origin: sandbox.baseUrl,
      path: `/v1/apps/${sandbox.appId}/jwks.json`,
      method: 'GET',
    });
    expect(answer.statusCode).toBe(200);
    return (await answer.body.json()) as JSONWebKeySet;
  };

  test('a test account is visible to the app only', async () => {
    const time = new Date(sandbox.clock.now()).toISOString();
    expect(await credentials()).toEqual([{ ...acmeApp.testAccount, created_at: time, updated_at: time }]);
    const other = await refusal(sandbox, 'getAppTestCredentials', {
      path: { app_id: 'cmh2k3v9e0000l20c9q7ab4yz' },
    });
    expect(other).toEqual({ status: 404, body: { error: 'App not found' } });
  });

  test('logs in with its code: a user is created once, and the token is verified with the public key set', async () => {
    const { email, otp_code: code } = acmeApp.testAccount;
    const seconds = Math.floor(sandbox.clock.now() / 1000);
    const first = (await call(sandbox, 'authenticatePasswordless', { body: { email, code } })).body;
    const verified = { verified_at: seconds, first_verified_at: seconds, latest_verified_at: seconds };
    expect(first).toEqual({
      user: {
        id: expect.stringMatching(/^did:service:/),
        created_at: seconds,
        is_guest: false,
        has_accepted_terms: false,
        linked_accounts: [{ type: 'email', address: email, ...verified }],
        mfa_methods: [],
      },
      token: expect.any(String),
      service_access_token: first.token,
      refresh_token: expect.stringMatching(/^rt_/),
      is_new_user: true,
    });
    const keys = await keySet();
    expect(keys).toEqual({
      keys: [
        {
          kty: 'EC',
          crv: 'P-256',
          x: expect.any(String),
          y: expect.any(String),
          kid: expect.any(String),
          use: 'sig',
          alg: 'ES256',
        },
      ],
    });
    const { payload } = await jwtVerify(first.token, createLocalJWKSet(keys), {
      currentDate: new Date(sandbox.clock.now()),
      algorithms: ['ES256'],
      typ: 'JWT',
      issuer: 'service.io',
      audience: sandbox.appId,
    });
    expect(payload).toMatchObject({ sub: first.user.id, sid: expect.any(String), exp: seconds + 3600 });

    const body = { email: email.toUpperCase(), code, mode: 'no-signup' } as const;
    const again = (await call(sandbox, 'authenticatePasswordless', { body })).body;
    expect(again).toMatchObject({ user: { id: first.user.id }, is_new_user: false });
  });

  test('logs in by phone in any spelling of the number, and exchanges the token for a wallet key', async () => {
    const { otp_code: code } = acmeApp.testAccount;
    const login = { phone_number: '+1 (555) 555-4010', code };
    const { user, token } = (await call(sandbox, 'authenticatePasswordless', { body: login })).body;
    const wallet = await newWallet({ user_id: user.id });
    const { body } = await call(sandbox, 'authenticateWallets', { body: { user_jwt: token } });
    const key = 'authorization_key' in body ? body.authorization_key : '';
    expect((await rpc(wallet.id, [key])).status).toBe(200);
  });

  test.each([
    ['a wrong code', { email: acmeApp.testAccount.email, code: '000000' }, 401, 'invalid_credentials'],
    [
      'an address that is no test account',
      { email: 'alice@example.com', code: '401040' },
      401,
      'invalid_credentials',
    ],
    [
      'a phone number that does not belong to the address',
      { email: acmeApp.testAccount.email, phone_number: '+1 555 555 0000', code: '401040' },
      401,
      'invalid_credentials',
    ],
    ['neither address nor number', { code: '401040' }, 400, 'invalid_data'],
    ['five digits', { email: acmeApp.testAccount.email, code: '40104' }, 400, 'invalid_data'],
  ])('a test account is refused with %s', async (_, body, status, code) => {
    const answer = await refusal(sandbox, 'authenticatePasswordless', { body });
    expect([answer.status, answer.body.code]).toEqual([status, code]);
  });

  test('an unknown user is not created with `no-signup`', async () => {
    await using fresh = await startSandbox();
    const { email, otp_code: code } = acmeApp.testAccount;
    const answer = await refusal(fresh, 'authenticatePasswordless', {
      body: { email, code, mode: 'no-signup' },
    });
    expect([answer.status, answer.body.code]).toEqual([404, 'user_does_not_exist']);
  });

  test('receives an identity token with the data of the user if the app has enabled it', async () => {
    await using own = await startSandbox();
    const { email, otp_code: code } = acmeApp.testAccount;
    const { body: user } = await call(own, 'createUser', {
      body: {
        linked_accounts: [
          { type: 'email', address: email },
          { type: 'phone', number: '+1 555 555 0123' },
          { type: 'twitter_oauth', subject: '12345678', username: 'ann', name: 'Ann' },
          { type: 'custom_auth', custom_user_id: 'ann' },
        ],
        custom_metadata: { tier: 'gold' },
      },
    });
    const configured = await own.dispatcher.request({
      origin: own.baseUrl,
      path: `/_sandbox/apps/${own.appId}`,
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ settings: { identity_tokens: true } }),
    });
    expect(configured.statusCode).toBe(200);
    const { body } = await call(own, 'authenticatePasswordless', { body: { email, code } });
    const keys = (await call(own, 'getAppJwks', { path: { app_id: own.appId } })).body;
    const { payload } = await jwtVerify(body.identity_token ?? '', createLocalJWKSet(keys), {
      currentDate: new Date(own.clock.now()),
    });
    const seconds = own.clock.now() / 1000;
    expect(payload).toEqual({
      sub: user.id,
      iss: 'service.io',
      aud: own.appId,
      iat: seconds,
      exp: seconds + 3600,
      cr: String(seconds),
      linked_accounts: expect.any(String),
      custom_metadata: '{"tier":"gold"}',
    });
    expect(JSON.parse(String(payload.linked_accounts))).toEqual([
      { type: 'email', address: email, lv: seconds },
      { type: 'phone', phone_number: '+1 555 555 0123', lv: seconds },
      { type: 'twitter_oauth', subject: '12345678', username: 'ann', name: 'Ann', lv: seconds },
      { type: 'custom_auth', custom_user_id: 'ann', lv: seconds },
    ]);
  });

  test('the key set of an app that does not exist is a 404', async () => {
    const answer = await refusal(sandbox, 'getAppJwks', { path: { app_id: 'cmh2k3v9e0000l20c9q7ab4yz' } });
    expect(answer).toEqual({ status: 404, body: { error: 'App not found' } });
  });

  test("a frozen user's token lives to its end", async () => {
    await using sandbox = await startSandbox();
    const { email, otp_code: code } = acmeApp.testAccount;
    const { token, user } = (await call(sandbox, 'authenticatePasswordless', { body: { email, code } })).body;
    const path = { intent_id: 'fmfdj6yqly31huorjqzq38zc' };
    const headers = { authorization: `Bearer ${token}` };
    await configureUser(sandbox, user.id, { frozen: true });
    expect((await refusal(sandbox, 'getIntent', { path }, { headers })).status).toBe(404);
    sandbox.clock.advance(3_600_000);
    expect((await refusal(sandbox, 'getIntent', { path }, { headers })).status).toBe(401);
  });

  test('a user token replaces the secret only in operations that accept one', async () => {
    const { email, otp_code: code } = acmeApp.testAccount;
    const { token } = (await call(sandbox, 'authenticatePasswordless', { body: { email, code } })).body;
    const path = { intent_id: 'fmfdj6yqly31huorjqzq38zc' };
    const bearer = (text: string) => ({ headers: { authorization: `Bearer ${text}` } });
    const accepted = await refusal(sandbox, 'getIntent', { path }, bearer(token));
    expect(accepted.status).not.toBe(401);
    expect((await refusal(sandbox, 'getIntent', { path }, bearer(`${token}x`))).status).toBe(401);
    expect(
      (await refusal(sandbox, 'getKeyQuorum', { path: { key_quorum_id: path.intent_id } }, bearer(token)))
        .status,
    ).toBe(401);
  });
});
