import { describe, expect, test } from 'vitest';
import { acmeApp } from '../../../mocks/apps.ts';
import { call, refusal } from '../../support/call.ts';
import { asOtherApp, configureApp } from '../../support/other-app.ts';
import { startSandbox } from '../../support/sandbox.ts';

const { email, phone_number, otp_code: code } = acmeApp.testAccount;

describe('entries', () => {
  const kinds = [
    { type: 'email', value: 'Alice@Example.com', stored: 'alice@example.com' },
    { type: 'emailDomain', value: 'Acme.Example', stored: 'acme.example' },
    { type: 'phone', value: '(202) 555-0143', stored: '+1 202 555 0143' },
    {
      type: 'wallet',
      value: '0xb6716976a3ebe8d39aceb04372f22ff8e6802d7a',
      stored: '0xb6716976A3ebe8D39aCEB04372f22Ff8e6802D7A',
    },
    {
      type: 'wallet',
      value: '6U5nJUvKrnmQH9wbFgdb6oyCa5bJLHBTecA7qF7y4LGn',
      stored: '6U5nJUvKrnmQH9wbFgdb6oyCa5bJLHBTecA7qF7y4LGn',
    },
  ] as const;

  test('of four kinds are stored like accounts, listed newest first, and removed', async () => {
    await using sandbox = await startSandbox();
    const path = { app_id: sandbox.appId };
    const made = [];
    for (const { type, value, stored } of kinds) {
      sandbox.clock.advance(1);
      const { body } = await call(sandbox, 'createAllowlistEntry', { path, body: { type, value } });
      expect(body).toEqual({
        id: expect.stringMatching(/^c[0-9a-z]{24}$/),
        appId: sandbox.appId,
        type,
        value: stored,
        acceptedAt: null,
      });
      const again = await call(sandbox, 'createAllowlistEntry', { path, body: { type, value: stored } });
      expect(again.body).toEqual(body);
      made.unshift(body);
    }
    expect((await call(sandbox, 'listAllowlistEntries', { path })).body).toEqual(made);
    for (const { type, value } of kinds) {
      const { body } = await call(sandbox, 'deleteAllowlistEntry', { path, body: { type, value } });
      expect(body).toEqual({ message: 'Allowlist entry removed' });
      expect(await refusal(sandbox, 'deleteAllowlistEntry', { path, body: { type, value } })).toEqual({
        status: 404,
        body: { error: 'Allowlist entry not found' },
      });
    }
    expect((await call(sandbox, 'listAllowlistEntries', { path })).body).toEqual([]);
  });

  test.each([
    { type: 'email', value: 'alice' },
    { type: 'email', value: `${'a'.repeat(243)}@example.com` },
    { type: 'emailDomain', value: '@acme.example' },
    { type: 'emailDomain', value: '' },
    { type: 'emailDomain', value: 'acme\0.example' },
    { type: 'phone', value: '12' },
    { type: 'wallet', value: '0x12' },
    { type: 'twitter', value: 'alice' },
    { type: 'email', value: 'alice@example.com', note: 'x' },
  ])('are refused: $type %#', async (body) => {
    await using sandbox = await startSandbox();
    const path = { app_id: sandbox.appId };
    for (const id of ['createAllowlistEntry', 'deleteAllowlistEntry'] as const) {
      const refused = await refusal(sandbox, id, { path, body });
      expect({ status: refused.status, code: refused.body.code }).toEqual({
        status: 400,
        code: 'invalid_data',
      });
    }
  });

  test('of another app are not found', async () => {
    await using sandbox = await startSandbox();
    const other = await asOtherApp(sandbox);
    const body = { type: 'email', value: 'alice@example.com' } as const;
    await call(sandbox, 'createAllowlistEntry', { path: { app_id: sandbox.appId }, body });
    const absent = { status: 404, body: { error: 'App not found' } };
    const path = { app_id: sandbox.appId };
    expect(await refusal(other, 'listAllowlistEntries', { path })).toEqual(absent);
    expect(await refusal(other, 'createAllowlistEntry', { path, body })).toEqual(absent);
    expect(await refusal(other, 'deleteAllowlistEntry', { path, body })).toEqual(absent);
    expect((await call(other, 'listAllowlistEntries', { path: { app_id: other.appId } })).body).toEqual([]);
  });
});

describe('a login while the allowlist is enabled', () => {
  const rejected = {
    status: 401,
    body: { error: 'the user is not on the allowlist of this app', code: 'allowlist_rejected' },
  };

  test('is refused for identities that are not listed, and creates no user', async () => {
    await using sandbox = await startSandbox();
    await configureApp(sandbox, { allowlist_enabled: true });
    expect(await refusal(sandbox, 'authenticatePasswordless', { body: { email, code } })).toEqual(rejected);
    expect((await refusal(sandbox, 'getUserByEmailAddress', { body: { address: email } })).status).toBe(404);
  });

  test.each([
    { entry: { type: 'email', value: email.toUpperCase() }, login: { email, code } },
    { entry: { type: 'emailDomain', value: 'example.com' }, login: { email, code } },
    { entry: { type: 'phone', value: phone_number.replaceAll(' ', '') }, login: { phone_number, code } },
  ] as const)(
    'is allowed for identities listed by $entry.type, which marks the entry as accepted',
    async ({ entry, login }) => {
      await using sandbox = await startSandbox();
      await configureApp(sandbox, { allowlist_enabled: true });
      const path = { app_id: sandbox.appId };
      await call(sandbox, 'createAllowlistEntry', { path, body: entry });
      sandbox.clock.advance(5000);
      await call(sandbox, 'authenticatePasswordless', { body: login });
      const firstMs = sandbox.clock.now();
      sandbox.clock.advance(5000);
      await call(sandbox, 'authenticatePasswordless', { body: login });
      expect((await call(sandbox, 'listAllowlistEntries', { path })).body).toMatchObject([
        { acceptedAt: firstMs },
      ]);
      await call(sandbox, 'deleteAllowlistEntry', { path, body: entry });
      expect(await refusal(sandbox, 'authenticatePasswordless', { body: login })).toEqual(rejected);
    },
  );

  test('is allowed for a user with another listed account', async () => {
    await using sandbox = await startSandbox();
    await call(sandbox, 'createUser', {
      body: {
        linked_accounts: [
          { type: 'email', address: email },
          { type: 'wallet', chain_type: 'ethereum', address: '0xb6716976a3ebe8d39aceb04372f22ff8e6802d7a' },
        ],
      },
    });
    await configureApp(sandbox, { allowlist_enabled: true });
    expect(await refusal(sandbox, 'authenticatePasswordless', { body: { email, code } })).toEqual(rejected);
    await call(sandbox, 'createAllowlistEntry', {
      path: { app_id: sandbox.appId },
      body: { type: 'wallet', value: '0xb6716976a3ebe8d39aceb04372f22ff8e6802d7a' },
    });
    await call(sandbox, 'authenticatePasswordless', { body: { email, code } });
  });
});
