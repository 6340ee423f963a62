import { createPublicKey } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { encodeFunctionData, erc20Abi, formatUnits, parseUnits } from 'viem';
import { describe, expect, test } from 'vitest';
import { acmeApp } from '../../mocks/apps.ts';
import { administerApps } from '../../src/admin/administration.ts';
import { attempt, call, refusal } from '../support/call.ts';
import { fund } from '../support/fund.ts';
import { asOtherApp, configureApp } from '../support/other-app.ts';
import { startSandbox } from '../support/sandbox.ts';
import { waitSeconds } from '../support/wait-seconds.ts';

describe('getApp', () => {
  test('an app is shown with its verification key and without secrets', async () => {
    await using sandbox = await startSandbox();
    const path = { app_id: sandbox.appId };
    const { body } = await call(sandbox, 'getApp', { path });
    expect(body).toMatchObject({
      id: sandbox.appId,
      name: 'Acme',
      email_auth: true,
      allowlist_enabled: false,
    });
    const { keys } = (await call(sandbox, 'getAppJwks', { path })).body;
    const { kty, crv, x, y } = createPublicKey(body.verification_key).export({ format: 'jwk' });
    expect(keys[0]).toMatchObject({ kty, crv, x, y });
    expect(JSON.stringify(body)).not.toContain(sandbox.appSecret);
  });

  test('settings are those that the operator set; a setting of another type counts as not set', async () => {
    await using sandbox = await startSandbox();
    const path = { app_id: sandbox.appId };
    const before = (await call(sandbox, 'getApp', { path })).body;
    const set = {
      allowlist_enabled: true,
      legal_name: 'Acme Inc.',
      theme: 'dark',
      allowed_native_app_ids: ['com.acme'],
      allowlist_config: { ...before.allowlist_config, error_title: 'Not yet' },
      allowed_origins: ['https://app.acme.example'],
    };
    await configureApp(sandbox, {
      ...set,
      logo_url: 7,
      guest_auth: 'yes',
      allowed_native_app_url_schemes: 'x',
    });
    const { allowed_origins, ...shown } = set;
    expect((await call(sandbox, 'getApp', { path })).body).toEqual({
      ...before,
      ...shown,
      allowed_domains: allowed_origins,
    });
  });

  test('another app is not found', async () => {
    await using sandbox = await startSandbox();
    const other = await asOtherApp(sandbox);
    const refused = await refusal(sandbox, 'getApp', { path: { app_id: other.appId } });
    expect(refused).toEqual({ status: 404, body: { error: 'App not found' } });
    expect((await call(other, 'getApp', { path: { app_id: other.appId } })).body.name).toBe('Other');
  });
});

describe('the allowlist', () => {
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
    ])('entries are refused: $type %#', async (body) => {
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

    test('entries of another app are not found', async () => {
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

    test('a login while the allowlist is enabled is refused for identities that are not listed, and creates no user', async () => {
      await using sandbox = await startSandbox();
      await configureApp(sandbox, { allowlist_enabled: true });
      expect(await refusal(sandbox, 'authenticatePasswordless', { body: { email, code } })).toEqual(rejected);
      expect((await refusal(sandbox, 'getUserByEmailAddress', { body: { address: email } })).status).toBe(
        404,
      );
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

    test('a login while the allowlist is enabled is allowed for a user with another listed account', async () => {
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
});

describe('getAppGasSpend', () => {
  const receiver = '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0';
  const usdcOnBase = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
  const path = { wallet_id: 'ext_wal_acme-ethereum' };
  const day = 24 * 60 * 60 * 1000;

  test('an app that sponsored nothing spent nothing', async () => {
    await using sandbox = await startSandbox();
    const { body: wallet } = await call(sandbox, 'getWallet', { path });
    await fund(sandbox, wallet.address, { chain: 'base', asset: 'eth', rawAmount: 10n ** 18n });
    const body = {
      source: { asset: 'eth', chain: 'base', amount: '0.1' },
      destination: { address: wallet.address },
    };
    // The wallet pays its gas itself.
    await call(sandbox, 'transferFromWallet', { path, body });
    const now = sandbox.clock.now();
    const query = {
      wallet_ids: [wallet.id, 'unknown'],
      start_timestamp: now - day,
      end_timestamp: now + day,
    };
    expect((await call(sandbox, 'getAppGasSpend', { query })).body).toEqual({ value: '0', currency: 'usd' });
  });

  test('the gas that the app sponsored is summed and equals the amounts of its events', async () => {
    await using sandbox = await startSandbox();
    const { body: wallet } = await call(sandbox, 'getWallet', { path });
    await fund(sandbox, wallet.address, { chain: 'base', asset: 'usdc', rawAmount: 1_000_000n });
    const data = encodeFunctionData({ abi: erc20Abi, functionName: 'transfer', args: [receiver, 1n] });
    const body = {
      method: 'eth_sendTransaction',
      caip2: 'eip155:8453',
      sponsor: true,
      params: { transaction: { to: usdcOnBase, data } },
    } as const;
    const startMs = sandbox.clock.now();
    for (let count = 0; count < 2; count += 1) {
      await call(sandbox, 'walletRpc', { path, body });
      await waitSeconds(sandbox, 10);
    }
    const rows = await sandbox.database.orm.em
      .fork()
      .execute<{ payload: string }[]>(
        "select payload from outbox_events where type = 'usage.gas_sponsorship.recorded'",
      );
    const reported = rows.map(({ payload }) => (JSON.parse(payload) as { amount_usd: string }).amount_usd);
    expect(reported).toHaveLength(2);
    const sum = reported.reduce((total, amount) => total + parseUnits(amount, 24), 0n);
    expect(sum).toBeGreaterThan(0n);
    const spend = async (wallet_ids: string[], start_timestamp: number) => {
      const query = { wallet_ids, start_timestamp, end_timestamp: startMs + day };
      return (await call(sandbox, 'getAppGasSpend', { query })).body;
    };
    expect(await spend([wallet.id, 'unknown'], startMs)).toEqual({
      value: formatUnits(sum, 24),
      currency: 'usd',
    });
    // The first was made at the beginning of the span, which counts.
    const second = formatUnits(parseUnits(reported[1]!, 24), 24);
    expect(await spend([wallet.id], startMs + 1)).toEqual({ value: second, currency: 'usd' });
    expect(await spend(['unknown'], startMs)).toEqual({ value: '0', currency: 'usd' });
  });

  test.each([
    [{ start_timestamp: 2, end_timestamp: 2 }, 'end_timestamp: expected a time after `start_timestamp`'],
    [{ start_timestamp: 0, end_timestamp: 30 * day + 1 }, 'end_timestamp: expected at most 30 days in all'],
    [{ start_timestamp: 0, end_timestamp: 2 ** 53 }, 'end_timestamp: must have the format unix-ms'],
  ])('getAppGasSpend: %o is refused', async (span, error) => {
    await using sandbox = await startSandbox();
    const { status, body } = await refusal(sandbox, 'getAppGasSpend', {
      query: { wallet_ids: ['x'], ...span },
    });
    expect({ status, code: body.code, error: body.error }).toEqual({
      status: 400,
      code: 'invalid_data',
      error,
    });
  });
});

describe('a rotated secret', () => {
  test('a sandbox whose clock stands still notices a secret that a command has rotated', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'custos-rotated-'));
    try {
      await using sandbox = await startSandbox({ dataFolder: folder });
      const frozenMs = sandbox.clock.now();
      const status = async (secret: string) =>
        (await attempt({ ...sandbox, appSecret: secret }, 'listWallets', {})).status;
      expect(await status(sandbox.appSecret)).toBe(200);
      // Valid for another second.
      const { secret } = await administerApps({ kind: 'folder', folder }).rotateSecret(sandbox.appId, 1_000);
      expect(await status(secret)).toBe(200);
      // Credentials are cached for two seconds.
      await wait(2_100);
      expect(await status(sandbox.appSecret)).toBe(401);
      expect(await status(secret)).toBe(200);
      expect(sandbox.clock.now()).toBe(frozenMs);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
