import { generateKeyPairSync } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createLocalJWKSet, exportJWK, jwtVerify, SignJWT, UnsecuredJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { updateApp } from '../../../src/domain/access/apps/app.ts';
import { checkAppSettings } from '../../../src/domain/access/apps/app-settings.ts';
import { resolveOwner } from '../../../src/domain/access/key-quorums/resolve-owner.ts';
import { requireAuthorization } from '../../../src/domain/access/owners/require-authorization.ts';
import {
  createUserTokens,
  issueAccessToken,
  issueIdentityToken,
  listSigningKeys,
  rotateSigningKey,
  verifyAccessToken,
} from '../../../src/domain/wallets/tokens/access-tokens.ts';
import { authenticateUser, authenticateWallets } from '../../../src/domain/wallets/user-keys/user-key.ts';
import { createWallet } from '../../../src/domain/wallets/wallets/create-wallet.ts';
import type { WalletRow } from '../../../src/domain/wallets/wallets/wallet.entity.ts';
import { hpkeRecipientFromSeed, openHpke } from '../../../src/engine/crypto/hpke.ts';
import type { AuthenticateWalletsRequest } from '../../../src/generated/schemas.ts';
import { tryPlan } from '../../../src/ports/operation-context.ts';
import { databaseKinds } from '../../support/databases.ts';
import { acme, openHouse, payloads, signWith, startMs } from './house-of-rows.ts';

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const rsa2 = generateKeyPairSync('rsa', { modulusLength: 2048 });
const ec = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
const pemOf = (pair: { publicKey: typeof rsa.publicKey }) =>
  pair.publicKey.export({ format: 'pem', type: 'spki' }).toString();
const nowSeconds = startMs / 1000;
const defaults = { ids: { cuid: () => 'ctestaccount0000000000000' }, nowMs: startMs };

interface TokenParts {
  claims?: Record<string, unknown>;
  alg?: string;
  kid?: string;
  pair?: { privateKey: typeof rsa.privateKey };
  expiresAtSeconds?: number | null;
}

function tokenOf({
  claims = { sub: 'alice' },
  alg = 'RS256',
  kid,
  pair = rsa,
  expiresAtSeconds,
}: TokenParts = {}) {
  const token = new SignJWT(claims).setProtectedHeader({
    alg,
    typ: 'JWT',
    ...(kid === undefined ? {} : { kid }),
  });
  if (expiresAtSeconds !== null) token.setExpirationTime(expiresAtSeconds ?? nowSeconds + 60);
  return token.sign(pair.privateKey);
}

/** A token with this header and an invalid signature. */
const tokenText = (header: object) =>
  [header, { sub: 'alice', exp: nowSeconds + 60 }]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .concat('c2ln')
    .join('.');

describe.each(databaseKinds)('on %s', (kind) => {
  let house: Awaited<ReturnType<typeof openHouse>>;
  let alice: string;

  beforeAll(async () => {
    house = await openHouse(kind);
    alice = await house.addUser('alice');
  });
  afterAll(() => house.close());

  const configure = (jwtAuth: Record<string, unknown> | null) =>
    house.operate((context) =>
      updateApp(context, acme.id, { settings: checkAppSettings({ jwt_auth: jwtAuth }, context) }),
    );
  const userOf = async (token: string) =>
    (await house.operate((context) => authenticateUser(context, token))).userId;
  const refusalOf = (token: string) =>
    userOf(token).then(
      (userId) => userId,
      (error) => `${error.status} ${error.message}`,
    );

  describe("a token of the app's own login, verified by one key", () => {
    test('is refused while nothing is configured', async () => {
      expect(await refusalOf(await tokenOf())).toBe(
        '401 the user JWT is not valid: the app has no JWT authentication configured',
      );
    });

    test.each([
      ['RS256', rsa],
      ['ES256', ec],
    ])('names its user under %s', async (alg, pair) => {
      await configure({ verification_key: pemOf(pair) });
      expect(await userOf(await tokenOf({ alg, pair }))).toBe(alice);
      expect(await userOf(await tokenOf({ alg, pair, kid: 'anything' }))).toBe(alice);
    });

    test.each([
      ['expired this second', { expiresAtSeconds: nowSeconds }, 'it has expired'],
      ['without exp', { expiresAtSeconds: null }, 'the claim `exp` is missing'],
      ['not yet valid', { claims: { sub: 'alice', nbf: nowSeconds + 1 } }, 'the claim `nbf` is check_failed'],
      ['signed by another key', { pair: rsa2 }, 'its signature does not verify'],
      ['of another algorithm', { alg: 'ES256', pair: ec }, 'no configured key fits its header'],
      ['of an algorithm that is not accepted', { alg: 'RS512' }, 'expected `alg` RS256 or ES256'],
      ['without the claim', { claims: { user: 'alice' } }, 'the claim `sub` is missing'],
      [
        'its number is that of several users',
        { claims: { sub: 2 ** 53 } },
        'the claim `sub` is a number that JSON cannot represent exactly: send a string',
      ],
    ])('is refused when %s', async (_, parts, reason) => {
      await configure({ verification_key: pemOf(rsa) });
      expect(await refusalOf(await tokenOf(parts))).toBe(`401 the user JWT is not valid: ${reason}`);
    });

    test.each([
      ['no token at all', 'x'],
      ['three empty parts', '..'],
      ['a token whose kid is an object', tokenText({ alg: 'RS256', kid: {} })],
      ['a token whose kid holds U+0000', tokenText({ alg: 'RS256', kid: 'x\0y' })],
      ['an unsigned token', new UnsecuredJWT({ sub: 'alice' }).setExpirationTime('1h').encode()],
    ])('is refused when it is %s', async (_, token) => {
      await configure({ verification_key: pemOf(rsa) });
      expect(await refusalOf(token)).toMatch(/^401 the user JWT is not valid: /);
    });

    test('a public key cannot serve as the secret of an HMAC', async () => {
      await configure({ verification_key: pemOf(rsa) });
      const token = await new SignJWT({ sub: 'alice' })
        .setProtectedHeader({ alg: 'HS256' })
        .setExpirationTime(nowSeconds + 60)
        .sign(new TextEncoder().encode(pemOf(rsa)));
      expect(await refusalOf(token)).toBe('401 the user JWT is not valid: expected `alg` RS256 or ES256');
    });

    test('must have one of the configured audiences, if any', async () => {
      await configure({ verification_key: pemOf(rsa), audiences: ['web', 'phone'] });
      expect(await userOf(await tokenOf({ claims: { sub: 'alice', aud: ['tv', 'phone'] } }))).toBe(alice);
      expect(await refusalOf(await tokenOf({ claims: { sub: 'alice', aud: 'tv' } }))).toMatch(
        /the claim `aud`/,
      );
      expect(await refusalOf(await tokenOf())).toMatch(/the claim `aud` is missing/);
    });

    test('identifies the user by the configured claim, numbers as digits', async () => {
      const seven = await house.addUser('7');
      await configure({ verification_key: pemOf(rsa), user_id_claim: 'uid' });
      expect(await userOf(await tokenOf({ claims: { sub: 'unknown', uid: 'alice' } }))).toBe(alice);
      expect(await userOf(await tokenOf({ claims: { uid: 7 } }))).toBe(seven);
    });

    test('is answered with 404 for an unknown user id', async () => {
      await configure({ verification_key: pemOf(rsa) });
      expect(await refusalOf(await tokenOf({ claims: { sub: 'mallory' } }))).toBe('404 User not found');
    });
  });

  describe("a token of the app's own login, verified by a key set", () => {
    let requests = 0;
    let keys: object[] = [];
    const server = createServer((_, response) => {
      requests += 1;
      response.end(JSON.stringify({ keys }));
    });
    let url: string;
    beforeAll(async () => {
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks.json`;
      keys = [
        { kty: 'RSA', alg: 'RS256', kid: 'broken', n: '%', e: 'AQAB' },
        { ...(await exportJWK(ec.publicKey)), alg: 'ES256', kid: 'ec' },
        { ...(await exportJWK(rsa2.publicKey)), alg: 'RS256', kid: 'other' },
        { ...(await exportJWK(rsa.publicKey)), alg: 'RS256', kid: 'one' },
      ];
    });
    afterAll(() => new Promise((resolve) => server.close(resolve)));

    test('is verified with the key of its kid, or any key of its algorithm without one', async () => {
      await configure({ jwks_url: url });
      expect(await userOf(await tokenOf({ kid: 'one' }))).toBe(alice);
      expect(await userOf(await tokenOf())).toBe(alice);
      expect(await userOf(await tokenOf({ alg: 'ES256', pair: ec }))).toBe(alice);
      expect(await refusalOf(await tokenOf({ kid: 'other' }))).toMatch(/signature does not verify/);
      expect(requests).toBe(1);
    });

    test('an unknown kid makes the set be fetched again, but not repeatedly', async () => {
      await configure({ jwks_url: url });
      requests = 0;
      const rotated = generateKeyPairSync('rsa', { modulusLength: 2048 });
      keys = [...keys, { ...(await exportJWK(rotated.publicKey)), alg: 'RS256', kid: 'two' }];
      house.clock.advance(30_000);
      expect(await userOf(await tokenOf({ kid: 'two', pair: rotated }))).toBe(alice);
      expect(requests).toBe(1);
      expect(await refusalOf(await tokenOf({ kid: 'three' }))).toMatch(/no configured key fits its header/);
      expect(requests).toBe(1);
      house.clock.set(startMs);
    });

    test('a set that cannot be fetched has its own 400 error', async () => {
      await configure({ jwks_url: url.replace('/jwks.json', '/never-fetched').replace(/:\d+/, ':1') });
      expect(await refusalOf(await tokenOf())).toBe('400 the JWKS document could not be fetched');
    });
  });

  describe("the service's own tokens", () => {
    const other = { id: 'cother', name: 'Other' };
    const issue = (app = acme) =>
      house.operate((context) => issueAccessToken(context, { userId: alice, sessionId: 's1' }), { app });
    const verify = (token: string, app = acme) =>
      house.operate((context) => verifyAccessToken(context, token), { app });
    const keySet = () => house.operate((context) => listSigningKeys(context, acme.id));

    test('are verified with the published key set, with the claims that clients require', async () => {
      const { payload, protectedHeader } = await jwtVerify(
        await issue(),
        createLocalJWKSet({ keys: await keySet() }),
        {
          currentDate: new Date(startMs),
        },
      );
      expect(protectedHeader).toEqual({ alg: 'ES256', typ: 'JWT', kid: (await keySet())[0]?.kid });
      expect(payload).toEqual({
        sid: 's1',
        sub: alice,
        iss: 'service.io',
        aud: acme.id,
        iat: nowSeconds,
        exp: nowSeconds + 3600,
      });
    });

    test('name their user until they expire', async () => {
      const token = await issue();
      expect(await verify(token)).toEqual({ userId: alice, sessionId: 's1', isFrozen: false });
      expect(await userOf(token)).toBe(alice);
      const tokens = createUserTokens(house.database.orm, house.services);
      expect(await tokens.verify(token, { appId: acme.id, nowMs: startMs, isChange: false })).toMatchObject({
        userId: alice,
        sessionId: 's1',
      });
      expect(
        await tokens.verify(token, { appId: acme.id, nowMs: startMs + 3_599_999, isChange: false }),
      ).toMatchObject({
        userId: alice,
      });
      expect(
        await tokens.verify(token, { appId: acme.id, nowMs: startMs + 3_600_000, isChange: false }),
      ).toBeUndefined();
      expect(await tokens.verify('x', { appId: acme.id, nowMs: startMs, isChange: false })).toBeUndefined();
    });

    test('are refused by another app', async () => {
      expect(await verify(await issue(), other)).toBeUndefined();
      expect(await verify(await issue(other), acme)).toBeUndefined();
    });

    test('an identity token is not an access token', async () => {
      const token = await house.operate((context) =>
        issueIdentityToken(context, { userId: alice, claims: { cr: '1', linked_accounts: '[]' } }),
      );
      expect(await verify(token)).toBeUndefined();
      expect(await refusalOf(token)).toBe(
        '401 the user JWT is not valid: it is not a live access token of this app',
      );
    });

    test('a token with one changed character is refused', async () => {
      const token = await issue();
      for (const index of [5, Math.floor(token.length / 2), token.length - 5]) {
        const changed = token.slice(0, index) + (token[index] === 'A' ? 'B' : 'A') + token.slice(index + 1);
        expect(await verify(changed)).toBeUndefined();
      }
    });

    // Non-string values and texts that PostgreSQL cannot store must not make the look-up fail.
    test.each([[{}], [true], [7], [null], [[['x']]], [''], ['x\0y'], ['\ud800'], ['k'.repeat(70_000)]])(
      'a token whose kid is %j is refused',
      async (kid) => {
        const [, payload, signature] = (await issue()).split('.');
        const header = Buffer.from(JSON.stringify({ alg: 'ES256', typ: 'JWT', kid })).toString('base64url');
        const token = [header, payload, signature].join('.');
        expect(await verify(token)).toBeUndefined();
        expect(await refusalOf(token)).toBe(
          '401 the user JWT is not valid: it is not a live access token of this app',
        );
        const tokens = createUserTokens(house.database.orm, house.services);
        expect(
          await tokens.verify(token, { appId: acme.id, nowMs: startMs, isChange: false }),
        ).toBeUndefined();
      },
    );

    test('after a rotation the old key still verifies and the new one signs', async () => {
      const before = await issue();
      const [oldKey] = await keySet();
      await house.operate((context) => rotateSigningKey({ ...context, nowMs: context.nowMs + 1 }, acme.id));
      const keys = await keySet();
      expect(keys).toHaveLength(2);
      expect(keys[1]).toEqual(oldKey);
      expect(await verify(before)).toMatchObject({ userId: alice });
      const after = await issue();
      expect(JSON.parse(Buffer.from(after.split('.')[0] ?? '', 'base64url').toString()).kid).toBe(
        keys[0]?.kid,
      );
      expect(await verify(after)).toMatchObject({ userId: alice });
    });
  });

  describe('authenticateWallets', () => {
    const recipientSeed = new Uint8Array(32).fill(3);
    let ownerId: string;
    let wallet: WalletRow;

    beforeAll(async () => {
      await configure({ verification_key: pemOf(rsa) });
      ownerId =
        (await house.operate((context) => resolveOwner(context, { owner: { user_id: alice } }))) ?? '';
      wallet = await house.operate((context) =>
        createWallet(context, { chain_type: 'ethereum', owner_id: ownerId }),
      );
    });

    const authenticate = async (body: Partial<AuthenticateWalletsRequest>) => {
      const request = { user_jwt: await tokenOf(), ...body } as AuthenticateWalletsRequest;
      return house.operate(async (context) => {
        const planned = await tryPlan(() => authenticateUser(context, request.user_jwt));
        return authenticateWallets(context, { body: request, planned });
      });
    };

    test('seals a key that signs for the user', async () => {
      const recipient = await hpkeRecipientFromSeed(recipientSeed);
      const spki = Buffer.concat([
        Buffer.from('3059301306072a8648ce3d020106082a8648ce3d030107034200', 'hex'),
        recipient.publicKeyBytes,
      ]);
      const answer = await authenticate({
        encryption_type: 'HPKE',
        recipient_public_key: spki.toString('base64'),
      });
      expect(answer).toEqual({
        encrypted_authorization_key: {
          encryption_type: 'HPKE',
          encapsulated_key: expect.stringMatching(/^B[A-Za-z0-9+/]{86}=$/),
          ciphertext: expect.any(String),
        },
        expires_at: startMs + 3_600_000,
        wallets: [expect.objectContaining({ id: wallet.id, owner_id: ownerId })],
      });
      if (!('encrypted_authorization_key' in answer)) throw new Error('the key is not sealed');
      const { encapsulated_key, ciphertext } = answer.encrypted_authorization_key;
      const opened = await openHpke({
        recipientPrivateKeyBytes: recipient.privateKeyBytes,
        encapsulatedKey: new Uint8Array(Buffer.from(encapsulated_key, 'base64')),
        ciphertext: new Uint8Array(Buffer.from(ciphertext, 'base64')),
      });
      const signatures = [signWith(new TextDecoder().decode(opened), payloads[0] ?? '')];
      expect(
        await house.operate(async (context) => (await requireAuthorization(context, { ownerId })).party, {
          signatures,
        }),
      ).toEqual({
        kind: 'owner',
      });
    });

    test('authenticateWallets returns the key in plain text without a recipient, a new one each time', async () => {
      const [first, second] = [await authenticate({}), await authenticate({})];
      if (!('authorization_key' in first && 'authorization_key' in second))
        throw new Error('the key is sealed');
      expect(first.authorization_key).not.toBe(second.authorization_key);
      for (const { authorization_key } of [first, second]) {
        const signatures = [signWith(authorization_key, payloads[0] ?? '')];
        await expect(
          house.operate(async (context) => (await requireAuthorization(context, { ownerId })).party, {
            signatures,
          }),
        ).resolves.toEqual({ kind: 'owner' });
      }
    });

    test('authenticateWallets names the field when the recipient cannot be read', async () => {
      const body = { encryption_type: 'HPKE', recipient_public_key: 'AAAA' } as const;
      await expect(authenticate(body)).rejects.toMatchObject({
        code: 'invalid_data',
        message: '/recipient_public_key: expected a DER SubjectPublicKeyInfo',
      });
    });

    test('authenticateWallets refuses a user without wallets', async () => {
      await house.addUser('carol');
      const userJwt = await tokenOf({ claims: { sub: 'carol' } });
      await expect(authenticate({ user_jwt: userJwt })).rejects.toMatchObject({
        status: 404,
        code: 'not_found',
      });
    });
  });
});

describe('settings of the app', () => {
  test.each([
    ['neither address nor key', { jwt_auth: {} }, '/settings/jwt_auth: expected either'],
    [
      'both',
      { jwt_auth: { jwks_url: 'https://a/b', verification_key: 'x' } },
      '/settings/jwt_auth: expected either',
    ],
    [
      'plain http',
      { jwt_auth: { jwks_url: 'http://example.com/jwks' } },
      '/settings/jwt_auth/jwks_url: expected an https',
    ],
    [
      'a private key',
      { jwt_auth: { verification_key: rsa.privateKey.export({ format: 'pem', type: 'pkcs8' }) } },
      'not a private one',
    ],
    ['garbage for a key', { jwt_auth: { verification_key: 'PEM' } }, 'expected a PEM public key'],
    [
      'an unknown member',
      { jwt_auth: { jwks_url: 'https://a/b', issuer: 'x' } },
      '/settings/jwt_auth/issuer: no such',
    ],
    [
      'an origin with a path',
      { allowed_origins: ['https://a.example/x'] },
      '/settings/allowed_origins/0: expected an origin',
    ],
    [
      'a code of five digits',
      { test_accounts: [{ otp_code: '12345' }] },
      '/settings/test_accounts/0/otp_code: expected six',
    ],
  ])('settings of the app: %s is refused', (_, settings, message) => {
    expect(() => checkAppSettings(settings, defaults)).toThrow(message);
  });

  test('settings of the app are returned in stored form; null and unknown names are unchanged', () => {
    expect(
      checkAppSettings(
        {
          jwt_auth: { jwks_url: 'https://a/b' },
          allowed_origins: ['https://a.example'],
          theme: 'dark',
          test_accounts: null,
        },
        defaults,
      ),
    ).toEqual({
      jwt_auth: { jwks_url: 'https://a/b', user_id_claim: 'sub', audiences: [] },
      allowed_origins: ['https://a.example'],
      theme: 'dark',
      test_accounts: null,
    });
  });

  test('a test account without an id or times gets them', () => {
    const account = { email: 'Test@example.com', phone_number: '+1 555 555 0100', otp_code: '123456' };
    expect(checkAppSettings({ test_accounts: [account] }, defaults)).toEqual({
      test_accounts: [
        {
          ...account,
          email: 'test@example.com',
          id: 'ctestaccount0000000000000',
          created_at_ms: startMs,
          updated_at_ms: startMs,
        },
      ],
    });
  });
});
