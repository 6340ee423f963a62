import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { systemEntropy } from '../../src/adapters/runtime.ts';
import { rotateSealedKeys } from '../../src/admin/rotate-keys.ts';
import { sealStoredTestCodes } from '../../src/domain/access/apps/test-account-codes.ts';
import type { Tables } from '../../src/domain/tables.ts';
import { checkMasterKey } from '../../src/domain/wallets/wallets/wallet-keys.ts';
import { createKeyStore } from '../../src/keys/key-operations.ts';
import { localMasterKey } from '../../src/keys/master-keys.ts';
import type { KeyStore } from '../../src/ports/key-store.ts';
import { inUnitOf, unitsOf } from '../../src/server/unit-of-work.ts';
import { attempt, call } from '../support/call.ts';
import { databaseKinds } from '../support/databases.ts';
import { configureApp } from '../support/other-app.ts';
import { openOperations, operationsOn, type TestOperations } from '../support/run-operations.ts';
import { startSandbox } from '../support/sandbox.ts';

// A copy of the database must not be enough to log in as a test account.
const account = {
  id: 'test-account',
  email: 'test-1@example.com',
  phone_number: '+1 555 555 0100',
  otp_code: '918273',
  created_at_ms: 0,
  updated_at_ms: 0,
};

describe.each(databaseKinds)('on %s', (kind) => {
  const apps = ({ database }: TestOperations) => database.orm.em.fork().getKysely<Tables>();

  const storedSettings = async (operations: TestOperations) => {
    const query = apps(operations).selectFrom('apps').select('settings');
    return (await query.where('id', '=', operations.app.id).executeTakeFirstOrThrow()).settings;
  };

  const logIn = async (operations: TestOperations, code = account.otp_code) => {
    const body = { email: account.email, code };
    return (await operations.run('authenticatePasswordless', { body })).status;
  };

  const codes = async (operations: TestOperations) => {
    const path = { app_id: operations.app.id };
    const { body } = await operations.run('getAppTestCredentials', { path });
    return (body as { data: { otp_code: string }[] }).data.map(({ otp_code: code }) => code);
  };

  test('codes that an earlier version has stored are sealed, and follow the master key', async () => {
    await using operations = await openOperations(kind);
    const { app, clock, database, services } = operations;
    const inTransaction = inUnitOf(unitsOf(database));
    const settings = JSON.stringify({ identity_tokens: true, test_accounts: [account] });
    await apps(operations).updateTable('apps').set({ settings }).where('id', '=', app.id).execute();

    await sealStoredTestCodes(services.keyStore, inTransaction);
    const sealed = await storedSettings(operations);
    expect(sealed).not.toContain(account.otp_code);
    expect(JSON.parse(sealed)).toMatchObject({ identity_tokens: true, test_accounts: [{ id: account.id }] });
    expect(await codes(operations)).toEqual([account.otp_code]);
    expect([await logIn(operations), await logIn(operations, '918274')]).toEqual([200, 401]);
    await sealStoredTestCodes(services.keyStore, inTransaction);
    expect(await storedSettings(operations)).toBe(sealed);

    // The key of the operations' own key store, and the next one.
    const former = localMasterKey('test', Buffer.alloc(32, 7), systemEntropy);
    const latter = localMasterKey('latter', randomBytes(32), systemEntropy);
    const both = createKeyStore({ masterKeys: [latter, former], entropy: systemEntropy });
    const onlyLatter = createKeyStore({ masterKeys: [latter], entropy: systemEntropy });
    const startWith = (keyStore: KeyStore) => inTransaction((em) => checkMasterKey(em, keyStore));
    await startWith(services.keyStore);
    await expect(startWith(onlyLatter)).rejects.toThrow('master key `test` is not configured');
    // The code, and the key of the access token of the login above.
    expect(
      await rotateSealedKeys(both, inTransaction, {
        onProgress: () => undefined,
        record: async () => undefined,
      }),
    ).toBe(2);
    await startWith(onlyLatter);
    const after = operationsOn(database, { app, nowMs: clock.nowMs, keyStore: onlyLatter });
    expect(await codes(after)).toEqual([account.otp_code]);
    expect(await logIn(after)).toBe(200);
    expect(
      await rotateSealedKeys(both, inTransaction, {
        onProgress: () => undefined,
        record: async () => undefined,
      }),
    ).toBe(0);
  });
});

test('a code that is set is stored sealed and not returned with the settings', async () => {
  await using sandbox = await startSandbox();
  await configureApp(sandbox, { test_accounts: [account] });
  const rows = await sandbox.database.orm.em
    .fork()
    .execute<{ settings: string }[]>('select settings from apps');
  expect(rows.map(({ settings }) => settings).join()).not.toContain(account.otp_code);
  const listed = await sandbox.dispatcher.request({
    origin: sandbox.baseUrl,
    path: '/_sandbox/apps',
    method: 'GET',
  });
  const text = await listed.body.text();
  expect(text).toContain(account.email);
  expect(text).not.toMatch(/otp_code|918273/);
  const { body } = await call(sandbox, 'getAppTestCredentials', { path: { app_id: sandbox.appId } });
  expect(body.data).toMatchObject([{ email: account.email, otp_code: account.otp_code }]);
  for (const [code, status] of [
    [account.otp_code, 200],
    ['000000', 401],
  ] as const) {
    const login = { body: { email: account.email, code } };
    expect((await attempt(sandbox, 'authenticatePasswordless', login)).status).toBe(status);
  }
});
