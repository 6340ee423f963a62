import { generateKeyPairSync } from 'node:crypto';
import { SignJWT } from 'jose';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { acmeApp } from '../../../mocks/apps.ts';
import { aliceKey, bobKey } from '../../../mocks/authorization-keys.ts';
import type { LinkedAccountInput } from '../../../src/generated/schemas.ts';
import { type CallOptions, call, refusal } from '../../support/call.ts';
import { configureApp } from '../../support/other-app.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

// Who can log in as a member of a key quorum obtains keys that sign for it, so with the safeguards the app secret alone
// does not decide it.
const login = generateKeyPairSync('rsa', { modulusLength: 2048 });
const hourMs = 3_600_000;
const published = {
  identity_changes: null,
  block_test_logins: null,
  block_linking_test_accounts: null,
};

let sandbox: TestSandbox;
beforeAll(async () => {
  const jwtPublicKeyPem = login.publicKey.export({ format: 'pem', type: 'spki' }).toString();
  sandbox = await startSandbox({ jwtPublicKeyPem });
});
beforeEach(() => configureApp(sandbox, published));
afterAll(() => sandbox[Symbol.asyncDispose]());

const customAuth = (id: string) => ({ type: 'custom_auth', custom_user_id: id }) as const;
const tokenOf = (subject: string) =>
  new SignJWT({ sub: subject })
    .setProtectedHeader({ alg: 'RS256', typ: 'JWT' })
    .setExpirationTime(sandbox.clock.now() / 1000 + 3600)
    .sign(login.privateKey);
const makeUser = async (...accounts: LinkedAccountInput[]) =>
  (await call(sandbox, 'createUser', { body: { linked_accounts: accounts } })).body.id;
const makeWallet = async (userId: string) =>
  (await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum', owner: { user_id: userId } } }))
    .body;
const keyOf = async (subject: string) => {
  const { body } = await call(sandbox, 'authenticateWallets', { body: { user_jwt: await tokenOf(subject) } });
  if (!('authorization_key' in body)) throw new Error('the key came sealed');
  return body.authorization_key;
};
const link = (userId: string, body: LinkedAccountInput, options: CallOptions = {}) =>
  call(sandbox, 'linkUserAccount', { path: { user_id: userId }, body }, options);
const unlink = (userId: string, id: string, options: CallOptions = {}) =>
  call(
    sandbox,
    'unlinkUserAccount',
    { path: { user_id: userId }, body: { type: 'custom_auth', handle: id } },
    options,
  );
const refusedLink = async (userId: string, body: LinkedAccountInput, options: CallOptions = {}) => {
  const answer = await refusal(sandbox, 'linkUserAccount', { path: { user_id: userId }, body }, options);
  return `${answer.status} ${answer.body.code}`;
};
const refusedUnlink = async (userId: string, id: string, options: CallOptions = {}) => {
  const input = { path: { user_id: userId }, body: { type: 'custom_auth', handle: id } };
  const answer = await refusal(sandbox, 'unlinkUserAccount', input, options);
  return `${answer.status} ${answer.body.code}`;
};
const sms = (number: string) => ({ type: 'phone', number }) as const;

describe('under `identity_changes: user_key`', () => {
  beforeEach(() => configureApp(sandbox, { identity_changes: 'user_key' }));

  test('the app secret alone does not move a login to the owner of a wallet', async () => {
    const victim = await makeUser(customAuth('victim'), sms('+1 555 555 7001'));
    const wallet = await makeWallet(victim);
    const mallory = await makeUser(customAuth('mallory'), sms('+1 555 555 7002'));
    await unlink(mallory, 'mallory');

    expect(await refusedUnlink(victim, 'victim')).toBe('401 missing_or_empty_authorization_header');
    expect(await refusedLink(victim, { type: 'email', address: 'm@example.com' })).toBe(
      '401 missing_or_empty_authorization_header',
    );
    const signedByMallory = { signWith: [bobKey.privateKey] };
    expect(await refusedUnlink(victim, 'victim', signedByMallory)).toBe('401 no_valid_user_session_keys');
    expect(await refusedLink(victim, { type: 'email', address: 'm@example.com' }, signedByMallory)).toBe(
      '401 no_valid_user_session_keys',
    );

    const key = await keyOf('victim');
    expect(await refusedUnlink(victim, 'victim', signedByMallory)).toBe(
      '401 zero_correct_authorization_signatures',
    );
    expect(await refusedLink(victim, { type: 'email', address: 'm@example.com' }, signedByMallory)).toBe(
      '401 zero_correct_authorization_signatures',
    );
    await link(victim, { type: 'email', address: 'victim@example.com' }, { signWith: [key] });
    await unlink(victim, 'victim', { signWith: [key] });
    // The key is still valid, so the user can and must sign.
    expect(await refusedLink(victim, customAuth('mallory'))).toBe(
      '401 missing_or_empty_authorization_header',
    );
    await link(victim, customAuth('victim again'), { signWith: [key] });
    const input = { user_jwt: await tokenOf('victim again') };
    const { body } = await call(sandbox, 'authenticateWallets', { body: input });
    expect(body.wallets.map(({ id }) => id)).toEqual([wallet.id]);

    sandbox.clock.advance(hourMs);
    const expired = { signWith: [key] };
    expect(await refusedUnlink(victim, 'victim again', expired)).toBe('401 user_session_keys_expired');
    expect(await refusedLink(victim, { type: 'github_oauth', subject: '7', username: 'm' }, expired)).toBe(
      '401 user_session_keys_expired',
    );
  });

  test('a key of another user or of a key quorum does not sign for it, nor does a nested membership escape', async () => {
    const inside = await makeUser(customAuth('inside'));
    const inner = await call(sandbox, 'createKeyQuorum', {
      body: { user_ids: [inside], public_keys: [aliceKey.publicKey], authorization_threshold: 1 },
    });
    await call(sandbox, 'createKeyQuorum', { body: { key_quorum_ids: [inner.body.id] } });
    const other = await makeUser(customAuth('other'));
    await makeWallet(other);
    for (const key of [await keyOf('other'), aliceKey.privateKey]) {
      expect(await refusedLink(inside, sms('+1 555 555 7004'), { signWith: [key] })).toBe(
        '401 no_valid_user_session_keys',
      );
    }
  });

  test('refreshing an account, users without a key quorum and users who cannot log in need no signature', async () => {
    const owner = await makeUser(customAuth('refreshed'), {
      type: 'github_oauth',
      subject: '91',
      username: 'before',
    });
    await makeWallet(owner);
    await link(owner, { type: 'github_oauth', subject: '91', username: 'after' });
    await link(await makeUser(customAuth('free')), sms('+1 555 555 7005'));
    const unclaimed = await makeUser({ type: 'email', address: 'unclaimed@example.com' });
    await makeWallet(unclaimed);
    await link(unclaimed, customAuth('claimed'));
    expect(await refusedLink(unclaimed, sms('+1 555 555 7006'))).toBe(
      '401 missing_or_empty_authorization_header',
    );
  });
});

test('under a waiting period, a new account is linked at once and logs in when the period is over', async () => {
  await configureApp(sandbox, { identity_changes: { wait_hours: 24 } });
  const userId = await makeUser(customAuth('patient'), sms('+1 555 555 7010'));
  await makeWallet(userId);
  const startMs = sandbox.clock.now();
  await unlink(userId, 'patient');
  const { body: user } = await link(userId, customAuth('newcomer'));
  const events = await sandbox.database.orm.em
    .fork()
    .execute<{ payload: string }[]>(
      "select payload from outbox_events where type = 'user.linked_account' order by sequence desc limit 1",
    );
  expect(JSON.parse(events[0]!.payload)).toMatchObject({
    user: { id: user.id },
    account: { type: 'custom_auth', custom_user_id: 'newcomer' },
    usable_at: startMs / 1000 + 24 * 3600,
  });

  const refused = async () =>
    (await refusal(sandbox, 'authenticateWallets', { body: { user_jwt: await tokenOf('newcomer') } })).body;
  expect(await refused()).toEqual({
    error: `the user JWT is not valid: its account can be used from ${new Date(startMs + 24 * hourMs).toISOString()}`,
    code: 'missing_or_invalid_token',
  });
  // Linking it again does not shorten the wait.
  await link(userId, customAuth('newcomer'));
  sandbox.clock.set(startMs + 24 * hourMs - 1);
  expect((await refused()).code).toBe('missing_or_invalid_token');
  sandbox.clock.set(startMs + 24 * hourMs);
  const key = await keyOf('newcomer');

  await unlink(userId, 'newcomer', { signWith: [key] });
  await link(userId, customAuth('signed for'), { signWith: [key] });
  await keyOf('signed for');
});

describe('test accounts', () => {
  const { email, otp_code: code } = acmeApp.testAccount;
  const victimOf = async (name: string) => {
    const userId = await makeUser(customAuth(name));
    await makeWallet(userId);
    return userId;
  };

  test('test accounts are not linked to members of key quorums where that is blocked, in whatever spelling', async () => {
    await configureApp(sandbox, { block_linking_test_accounts: true });
    const victim = await victimOf('blocked');
    for (const account of [
      { type: 'email', address: email.toUpperCase() },
      sms(acmeApp.testAccount.phone_number.replaceAll(' ', '')),
    ] as const) {
      expect(await refusedLink(victim, account)).toBe('400 invalid_data');
    }
    await link(await makeUser(customAuth('no wallet')), { type: 'email', address: email });
  });

  test('test accounts take over the owner of a wallet in a sandbox without safeguards, as published', async () => {
    const victim = await victimOf('taken over');
    await link(victim, sms(acmeApp.testAccount.phone_number));
    const body = { phone_number: acmeApp.testAccount.phone_number, code };
    expect((await call(sandbox, 'authenticatePasswordless', { body })).body.user.id).toBe(victim);
  });

  test('neither log in nor are listed where that is blocked', async () => {
    await configureApp(sandbox, { block_test_logins: true });
    const path = { app_id: sandbox.appId };
    expect((await call(sandbox, 'getAppTestCredentials', { path })).body).toEqual({ data: [] });
    const answer = await refusal(sandbox, 'authenticatePasswordless', { body: { email, code } });
    expect(answer.body.code).toBe('invalid_credentials');
  });
});

test.each([
  ['anyone'],
  [true],
  [{}],
  [{ wait_hours: 0 }],
  [{ wait_hours: 1.5 }],
  [{ wait_hours: 721 }],
  [{ wait_hours: 24, more: 1 }],
])('`identity_changes` cannot be %j', async (value) => {
  await expect(configureApp(sandbox, { identity_changes: value })).rejects.toThrow(
    '/settings/identity_changes',
  );
});
