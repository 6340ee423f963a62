import { createLocalJWKSet, importSPKI, type JWK, jwtVerify } from 'jose';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startSandbox, type TestSandbox } from '../../../src/testing/testing.ts';
import { runCommand } from '../../support/run-custos.ts';

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox[Symbol.asyncDispose]());

async function control<Body>(method: string, path: string, body?: object) {
  const response = await sandbox.fetch(`${sandbox.baseUrl}/_sandbox${path}`, {
    method,
    ...(body === undefined
      ? {}
      : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as Body };
}

const cli = (...args: string[]) =>
  runCommand([...args, '--url', sandbox.baseUrl, '--ca-file', sandbox.caFile]);

/** Creates a wallet of a user, without which a user gets no key. */
async function walletOf(user: string) {
  const { userId } = await sandbox.signIn(user);
  return sandbox.call('createWallet', { body: { chain_type: 'ethereum', owner: { user_id: userId } } });
}

describe('a session of a user', () => {
  test('is opened by id, email address and custom user id; its tokens verify by the keys of the app', async () => {
    const byName = await sandbox.signIn('alice');
    const sessions = [
      byName,
      await sandbox.signIn('Alice@example.com'),
      await sandbox.signIn(byName.userId),
      await sandbox.signIn(byName.userId.replace('did:service:', '')),
    ];
    expect(new Set(sessions.map(({ userId }) => userId)).size).toBe(1);
    expect(new Set(sessions.map(({ sessionId }) => sessionId)).size).toBe(sessions.length);
    // By the clock of this machine, as a server under test verifies them.
    const { keys } = await sandbox.call('getAppJwks', { path: { app_id: sandbox.appId } });
    const trusted = createLocalJWKSet({ keys: keys as JWK[] });
    for (const { accessToken, sessionId, userId } of sessions) {
      const { payload } = await jwtVerify(accessToken, trusted, {
        issuer: 'service.io',
        audience: sandbox.appId,
      });
      expect(payload).toMatchObject({ sub: userId, sid: sessionId });
    }
    const { payload } = await jwtVerify(byName.identityToken, trusted);
    expect(String(payload.linked_accounts)).toContain('alice@example.com');
  });

  test('calls operations as the user, until it has expired', async () => {
    await using own = await startSandbox();
    const session = await own.signIn('bob');
    expect(await session.call('listOauthGrants')).toEqual({ data: [] });
    await own.clock.advance(3_600_000);
    const { status, error } = await session.attempt('listOauthGrants');
    expect([status, error?.data?.hint]).toEqual([
      401,
      expect.stringContaining('got one that has expired at'),
    ]);
  });

  test('brings a key that signs as the user', async () => {
    const alice = await sandbox.signIn('alice');
    const owned = await walletOf('alice');
    await walletOf('bob');
    const update = { path: { wallet_id: owned.id }, body: { display_name: 'Mine' } };
    expect((await sandbox.attempt('updateWallet', update)).status).toBe(401);
    const bob = await (await sandbox.signIn('bob')).signer();
    expect((await sandbox.as(bob).attempt('updateWallet', update)).status).toBe(401);
    expect((await sandbox.as(await alice.signer()).attempt('updateWallet', update)).status).toBe(200);
  });

  test('is not opened for a user who is unknown or frozen', async () => {
    expect(await control('POST', '/users/nobody/session')).toMatchObject({
      ...{ status: 404, body: { error: 'User not found' } },
    });
    const { id } = await sandbox.call('createUser', {
      body: { linked_accounts: [{ type: 'phone', number: '+1 555 555 0123' }] },
    });
    expect((await sandbox.signIn('+15555550123')).userId).toBe(id);
    await control('PUT', `/apps/${sandbox.appId}/users/${id}`, { frozen: true });
    expect(await control('POST', `/users/${id}/session`)).toMatchObject({
      ...{ status: 400, body: { error: expect.stringContaining('the user is frozen') } },
    });
  });
});

describe('the simulated login', () => {
  interface Login {
    readonly issuer: string;
    readonly verification_key: string;
    readonly keys: JWK[];
  }

  test('issues tokens that the app accepts, and that a server verifies by either form of the key', async () => {
    const alice = await sandbox.signIn('alice');
    const { body: login } = await control<Login>('GET', '/login');
    const token = alice.customToken ?? '';
    const { payload } = await jwtVerify(token, createLocalJWKSet(login), { issuer: login.issuer });
    expect(payload.sub).toBe('alice');
    await jwtVerify(token, await importSPKI(login.verification_key, 'ES256'));
    const owned = await walletOf('alice');
    const { wallets } = await sandbox.call('authenticateWallets', { body: { user_jwt: token } });
    expect(wallets.map(({ id }) => id)).toContain(owned.id);
  });

  test('is accepted by another app once its settings have the key, with the claim that they name', async () => {
    const { body: app } = await control<{ id: string; secret: string }>('POST', '/apps', { name: 'Globex' });
    const headers = {
      'service-app-id': app.id,
      authorization: `Basic ${Buffer.from(`${app.id}:${app.secret}`).toString('base64')}`,
      'content-type': 'application/json',
    };
    const post = (path: string, body: object) =>
      sandbox.fetch(sandbox.baseUrl + path, { method: 'POST', headers, body: JSON.stringify(body) });
    const linked_accounts = [{ type: 'custom_auth', custom_user_id: 'dora' }];
    await post('/v1/users', { linked_accounts, wallets: [{ chain_type: 'ethereum' }] });
    const signIn = async () =>
      (await control<{ custom_token: string | null }>('POST', `/users/dora/session?app_id=${app.id}`)).body;
    expect((await signIn()).custom_token).toBeNull();
    const { body: login } = await control<Login>('GET', '/login');
    const jwt_auth = {
      ...{ verification_key: login.verification_key, user_id_claim: 'uid', audiences: ['globex'] },
    };
    await control('PUT', `/apps/${app.id}`, { settings: { jwt_auth } });
    const { custom_token: token } = await signIn();
    expect((await post('/v1/wallets/authenticate', { user_jwt: token })).status).toBe(200);
    // The first app expects another claim.
    const elsewhere = await sandbox.attempt('authenticateWallets', { body: { user_jwt: token ?? '' } });
    expect(elsewhere.status).toBe(401);
  });
});

describe('custos token', () => {
  test('prints a token, and `custos call --user` uses one', async () => {
    const { code, stdout } = await cli('token', 'alice');
    expect([code, stdout.trim().split('.').length]).toEqual([0, 3]);
    const grants = await cli('call', 'listOauthGrants', '--user', stdout.trim());
    expect([grants.code, JSON.parse(grants.stdout)]).toEqual([0, { data: [] }]);
    const byName = await cli('call', 'listOauthGrants', '--user', 'alice@example.com');
    expect([byName.code, JSON.parse(byName.stdout)]).toEqual([0, { data: [] }]);
    await walletOf('bob');
    const custom = (await cli('token', 'bob', '--custom')).stdout.trim();
    const body = { user_jwt: custom };
    expect((await sandbox.attempt('authenticateWallets', { body })).status).toBe(200);
    const all = JSON.parse((await cli('token', 'bob', '--json')).stdout);
    expect(all).toMatchObject({ app_id: sandbox.appId, access_token: expect.any(String) });
  });

  test('names the reason when there is no such token', async () => {
    const { id } = await sandbox.call('createUser', {
      body: { linked_accounts: [{ type: 'email', address: 'eve@example.com' }] },
    });
    const custom = await cli('token', id, '--custom');
    expect([custom.code, custom.stderr]).toEqual([2, expect.stringContaining('custom_auth')]);
    const unknown = await cli('token', 'nobody');
    expect([unknown.code, unknown.stderr]).toEqual([1, 'custos: User not found\n']);
    const both = await cli('token', 'alice', '--custom', '--identity');
    expect([both.code, both.stderr]).toEqual([2, expect.stringContaining('got both')]);
  });
});
