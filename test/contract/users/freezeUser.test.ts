import { afterAll, beforeAll, expect, test } from 'vitest';
import { acmeApp } from '../../../mocks/apps.ts';
import { call, refusal } from '../../support/call.ts';
import { asOtherApp } from '../../support/other-app.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
});
afterAll(() => sandbox[Symbol.asyncDispose]());

const { email, otp_code: code } = acmeApp.testAccount;
const logIn = async () => (await call(sandbox, 'authenticatePasswordless', { body: { email, code } })).body;

test('freezing a user blocks logins and ends sessions and keys, but not wallets and issued tokens', async () => {
  const { token, user } = await logIn();
  const path = { user_id: user.id };
  const { body: wallet } = await call(sandbox, 'createWallet', {
    body: { chain_type: 'ethereum', owner: { user_id: user.id } },
  });
  const wallets = { user_jwt: token };
  const { body: session } = await call(sandbox, 'authenticateWallets', { body: wallets });
  const key = (session as { authorization_key: string }).authorization_key;
  const message = {
    path: { wallet_id: wallet.id },
    body: { method: 'personal_sign', params: { message: 'hi', encoding: 'utf-8' } },
  } as const;
  await call(sandbox, 'walletRpc', message, { signWith: [key] });

  sandbox.clock.advance(60_000);
  const frozenAt = Math.floor(sandbox.clock.now() / 1000);
  expect((await call(sandbox, 'freezeUser', { path })).body).toEqual({ success: true });
  expect((await call(sandbox, 'getUser', { path })).body).toMatchObject({ frozen_at: frozenAt });
  // Once more changes nothing, not even the time.
  sandbox.clock.advance(60_000);
  expect((await call(sandbox, 'freezeUser', { path })).body).toEqual({ success: true });
  expect((await call(sandbox, 'getUser', { path })).body).toMatchObject({ frozen_at: frozenAt });

  const login = await refusal(sandbox, 'authenticatePasswordless', { body: { email, code } });
  expect(login).toMatchObject({ status: 401, body: { code: 'invalid_credentials' } });
  expect(await refusal(sandbox, 'authenticateWallets', { body: wallets })).toMatchObject({ status: 401 });
  expect(await refusal(sandbox, 'walletRpc', message, { signWith: [key] })).toMatchObject({ status: 401 });
  const approval = { body: { user_code: 'BBBB-BBBB', action: 'approve' } };
  const asUser = { headers: { authorization: `Bearer ${token}` } };
  expect(await refusal(sandbox, 'verifyOauthDevice', approval, asUser)).toMatchObject({ status: 401 });
  expect((await call(sandbox, 'getWallet', { path: { wallet_id: wallet.id } })).body).toEqual(wallet);
  expect((await call(sandbox, 'listOauthGrants', {}, asUser)).body).toEqual({ data: [] });

  expect((await call(sandbox, 'unfreezeUser', { path })).body).toEqual({ success: true });
  expect((await call(sandbox, 'unfreezeUser', { path })).body).toEqual({ success: true });
  expect((await call(sandbox, 'getUser', { path })).body).not.toHaveProperty('frozen_at');
  // What ended stays ended: neither the key nor the token of the old session signs again.
  expect(await refusal(sandbox, 'walletRpc', message, { signWith: [key] })).toMatchObject({ status: 401 });
  const old = await refusal(sandbox, 'authenticateWallets', { body: wallets });
  expect(old).toMatchObject({ status: 401, body: { error: expect.stringContaining('session was revoked') } });
  expect((await refusal(sandbox, 'verifyOauthDevice', approval, asUser)).status).toBe(401);
  const { token: next } = await logIn();
  const again = await call(sandbox, 'authenticateWallets', { body: { user_jwt: next } });
  const nextKey = (again.body as { authorization_key: string }).authorization_key;
  expect((await call(sandbox, 'walletRpc', message, { signWith: [nextKey] })).status).toBe(200);

  sandbox.clock.advance(3_600_000);
  expect((await refusal(sandbox, 'listOauthGrants', {}, asUser)).status).toBe(401);
});

test('a frozen user rejects no intents', async () => {
  const { token, user } = await logIn();
  const asUser = { headers: { authorization: `Bearer ${token}` } };
  const { body: wallet } = await call(sandbox, 'createWallet', {
    body: { chain_type: 'ethereum', owner: { user_id: user.id } },
  });
  const proposal = { method: 'personal_sign', params: { message: 'hi', encoding: 'utf-8' } } as const;
  const { body: intent } = await call(sandbox, 'createWalletRpcIntent', {
    ...{ path: { wallet_id: wallet.id }, body: proposal },
  });
  const path = { intent_id: intent.intent_id };
  await call(sandbox, 'freezeUser', { path: { user_id: user.id } });
  const rejection = await refusal(sandbox, 'rejectIntent', { path }, asUser);
  expect(rejection).toMatchObject({ status: 401, body: { error: expect.stringContaining('is frozen') } });
  expect((await call(sandbox, 'getIntent', { path }, asUser)).body.status).toBe('pending');
  await call(sandbox, 'unfreezeUser', { path: { user_id: user.id } });
  expect((await refusal(sandbox, 'rejectIntent', { path }, asUser)).status).toBe(401);
  const { token: next } = await logIn();
  await call(sandbox, 'rejectIntent', { path }, { headers: { authorization: `Bearer ${next}` } });
});

test('the audit log records both', async () => {
  const { user } = await logIn();
  const path = { user_id: user.id };
  await call(sandbox, 'freezeUser', { path });
  await call(sandbox, 'unfreezeUser', { path });
  await sandbox.settle();
  const rows = await sandbox.database.orm.em
    .fork()
    .execute<{ entry: string }[]>('select entry from audit_records');
  const recorded = rows.map(({ entry }) => (JSON.parse(entry) as { operation: string }).operation);
  expect(recorded).toEqual(expect.arrayContaining(['freezeUser', 'unfreezeUser']));
});

test.each(['freezeUser', 'unfreezeUser'] as const)(
  '%s of an unknown or foreign user is a 404',
  async (id) => {
    const { user } = await logIn();
    const other = await asOtherApp(sandbox);
    for (const [app, user_id] of [
      [sandbox, 'unknown'],
      [other, user.id],
    ] as const) {
      expect(await refusal(app, id, { path: { user_id } })).toEqual({
        status: 404,
        body: { error: 'User not found' },
      });
    }
  },
);
