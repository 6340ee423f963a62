import { generateKeyPairSync } from 'node:crypto';
import SwaggerParser from '@apidevtools/swagger-parser';
import { Agent } from 'undici';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { acmeApp } from '../../mocks/apps.ts';
import { operations as controlOperations } from '../../src/sandbox/generated/operations.ts';
import { call, refusal } from '../support/call.ts';
import { fund } from '../support/fund.ts';
import { startSandbox, type TestSandbox } from '../support/sandbox.ts';

const startMs = Date.UTC(2026, 0, 1);
let sandbox: TestSandbox;
let dispatcher: Agent;

beforeAll(async () => {
  sandbox = await startSandbox();
  // Some callers below send a host that the certificate does not cover, so they skip the verification.
  dispatcher = new Agent({ connect: { ca: sandbox.caPem, checkServerIdentity: () => undefined } });
});

afterAll(async () => {
  await dispatcher.destroy();
  await sandbox[Symbol.asyncDispose]();
});

beforeEach(() => sandbox.reset());

/** Calls the control plane, which requires no credentials. */
async function control(method: 'GET' | 'POST' | 'PUT', path: string, body?: object, headers = {}) {
  const answer = await dispatcher.request({
    origin: sandbox.baseUrl,
    path: `/_sandbox${path}`,
    method,
    headers: body === undefined ? headers : { 'content-type': 'application/json', ...headers },
    body: body === undefined ? null : JSON.stringify(body),
  });
  return { status: answer.statusCode, body: (await answer.body.json()) as Record<string, unknown> };
}

describe('the clock', () => {
  test('a seeded sandbox starts frozen at the beginning of 2026', async () => {
    expect(await control('GET', '/clock')).toEqual({
      status: 200,
      body: { now_ms: startMs, now: '2026-01-01T00:00:00.000Z', frozen: true },
    });
  });

  test('set, advance and freeze are applied in this order and affect operations', async () => {
    const moved = await control('PUT', '/clock', {
      frozen: true,
      advance_ms: 500,
      now_ms: 1_800_000_000_000,
    });
    expect(moved.body).toEqual({ now_ms: 1_800_000_000_500, now: '2027-01-15T08:00:00.500Z', frozen: true });
    const wallet = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
    expect(wallet.body.created_at).toBe(1_800_000_000_500);
  });

  test('a clock at its latest time leaves room for what is planned after it', async () => {
    const latestMs = Date.UTC(9900, 0, 1);
    const { status, body } = await control('PUT', '/clock', { now_ms: latestMs, frozen: false });
    expect({ status, frozen: body.frozen }).toEqual({ status: 200, frozen: false });
    const wallet = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
    expect(wallet.body.created_at).toBeGreaterThanOrEqual(latestMs);
    const path = { wallet_id: wallet.body.id };
    await call(sandbox, 'archiveWallet', { path }, { idempotencyKey: 'far-ahead' });
    for (const beyond of [{ now_ms: 253_402_300_799_999 }, { advance_ms: 1 }, { now_ms: latestMs + 1 }]) {
      const refused = await control('PUT', '/clock', { frozen: true, ...beyond });
      expect(refused.status).toBe(400);
      expect(refused.body.error).toContain(`/${Object.keys(beyond)[0]}`);
    }
  });

  test('what was planned for later than a clock that is set back is done at once', async () => {
    const path = { wallet_id: 'ext_wal_acme-ethereum' };
    const { address } = (await call(sandbox, 'getWallet', { path })).body;
    await fund(sandbox, address, { chain: 'base', asset: 'eth', rawAmount: 10n ** 18n });
    await control('PUT', '/clock', { now_ms: Date.UTC(2036, 0, 1) });
    const { body: begun } = await call(sandbox, 'transferFromWallet', {
      path,
      body: { source: { asset: 'eth', chain: 'base', amount: '0.1' }, destination: { address } },
    });
    expect(begun.status).toBe('pending');
    await control('PUT', '/clock', { now_ms: startMs });
    await control('PUT', '/clock', { advance_ms: 60_000 });
    const { body: action } = await call(sandbox, 'getWalletAction', {
      path: { ...path, action_id: begun.id },
    });
    expect(action.status).toBe('succeeded');
  });

  test('transactions that were sent one after the other do not stop it once each', async () => {
    const set = vi.spyOn(sandbox.clock, 'set');
    const { body: wallet } = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
    await fund(sandbox, wallet.address, { chain: 'base', asset: 'eth', rawAmount: 10n ** 18n });
    /** How often the clock stops while these transactions get into a block. */
    const stopsOf = async (count: number): Promise<number> => {
      for (let sent = 0; sent < count; sent += 1) {
        await call(sandbox, 'walletRpc', {
          path: { wallet_id: wallet.id },
          body: {
            ...{ method: 'eth_sendTransaction', caip2: 'eip155:8453' },
            params: { transaction: { to: wallet.address, value: 1 } },
          },
        });
        await control('PUT', '/clock', { advance_ms: 7 });
      }
      set.mockClear();
      await control('PUT', '/clock', { advance_ms: 60_000 });
      return set.mock.calls.length;
    };
    const ofOne = await stopsOf(1);
    expect(ofOne).toBeGreaterThan(2);
    expect(await stopsOf(10)).toBeLessThan(2 * ofOne);
    set.mockRestore();
  });

  test('an unfrozen clock runs', async () => {
    await control('PUT', '/clock', { frozen: false });
    await new Promise((resolve) => setTimeout(resolve, 20));
    const { body } = await control('GET', '/clock');
    expect(body.frozen).toBe(false);
    expect(body.now_ms).toBeGreaterThan(startMs + 10);
    expect(body.now_ms).toBeLessThan(startMs + 60_000);
  });

  test('a request is accepted before its expiry and refused after it', async () => {
    const options = { expiryMs: startMs + 60_000 };
    const renaming = { path: { wallet_id: 'ext_wal_acme-ethereum' }, body: { display_name: 'Acme again' } };
    await call(sandbox, 'updateWallet', renaming, options);
    await control('PUT', '/clock', { advance_ms: 60_001 });
    const { body } = await refusal(sandbox, 'updateWallet', renaming, options);
    expect(body.code).toBe('request_expired');
  });

  test.each([
    [{}, ''],
    [{ now: 5 }, '/now'],
    [{ now_ms: 'tomorrow' }, '/now_ms'],
    [{ advance_ms: 0.5 }, '/advance_ms'],
    [{ now_ms: 0, advance_ms: -1 }, '/advance_ms'],
  ])('the clock: %j is refused', async (body, pointer) => {
    const { status, body: refused } = await control('PUT', '/clock', body);
    expect({ status, code: refused.code }).toEqual({ status: 400, code: 'invalid_data' });
    expect(refused.data).toMatchObject({ issues: [{ pointer }] });
    expect((await control('GET', '/clock')).body.now_ms).toBe(startMs);
  });
});

describe('a reset', () => {
  test('restores the seed data and repeats the same ids', async () => {
    const [before, first] = [await listIds(), await makeWalletId()];
    await control('PUT', '/clock', { advance_ms: 1_000 });
    await control('POST', '/apps', { name: 'Globex' });
    expect(await control('POST', '/reset')).toEqual({ status: 200, body: { reset: true, now_ms: startMs } });
    expect(await listIds()).toEqual(before);
    expect(await makeWalletId()).toBe(first);
    expect(((await control('GET', '/apps')).body.data as unknown[]).length).toBe(1);
  });

  async function makeWalletId(): Promise<string> {
    return (await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } })).body.id;
  }

  async function listIds(): Promise<string[]> {
    return (await call(sandbox, 'listWallets', {})).body.data.map(({ id }) => id);
  }
});

describe('prices', () => {
  const quoted = async () => {
    const { body: wallet } = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
    const { body } = await call(sandbox, 'quoteWalletTransfer', {
      path: { wallet_id: wallet.id },
      body: {
        source: { asset: 'eth', chain: 'base', amount: '1' },
        destination: { address: wallet.address, asset: 'usdc', chain: 'arbitrum' },
      },
    });
    return body.estimated_output_amount;
  };

  test('move the rates of the exchange, until they are restored or the sandbox is reset', async () => {
    expect(await quoted()).toBe('2996.4');
    const { status, body } = await control('PUT', '/prices', { prices: { eth: '2500.50', usdc: '0.5' } });
    expect({ status, prices: body.prices }).toMatchObject({
      status: 200,
      prices: { eth: '2500.50', sol: '150' },
    });
    // 0.9988 * 2500.5 / 0.5
    expect(await quoted()).toBe('4994.9988');
    await control('PUT', '/prices', { prices: { usdc: null } });
    expect(await quoted()).toBe('2497.4994');
    await sandbox.reset();
    expect(await quoted()).toBe('2996.4');
  });

  test.each([{ eth: '0' }, { eth: '0.00' }, { eth: '-1' }, { eth: 3000 }, { ETH: '1' }, {}])(
    'prices: refuses %j',
    async (prices) => {
      expect(await control('PUT', '/prices', { prices })).toMatchObject({
        status: 400,
        body: { code: 'invalid_data' },
      });
    },
  );
});

test('the document of the control plane describes each of its operations', async () => {
  const { status, body } = await control('GET', '/openapi.json');
  expect(status).toBe(200);
  const document = await SwaggerParser.validate(structuredClone(body) as never);
  const described = Object.values(document.paths ?? {}).flatMap((item) =>
    Object.values(item as Record<string, { operationId?: string }>).map(({ operationId }) => operationId),
  );
  expect(described.sort()).toEqual(Object.keys(controlOperations).sort());
});

test('a test account is configured with its email address, phone number and code', async () => {
  const account = { email: 'new@example.com', phone_number: '+1 555 555 0100', otp_code: '123456' };
  await control('PUT', `/apps/${acmeApp.id}`, { settings: { test_accounts: [account] } });
  const { body } = await call(sandbox, 'getAppTestCredentials', { path: { app_id: acmeApp.id } });
  expect(JSON.stringify(body)).toContain(account.email);
});

describe('apps', () => {
  test('settings can be sent back as they were shown', async () => {
    const path = `/apps/${acmeApp.id}`;
    const account = { email: 'kept@example.com', phone_number: '+1 555 555 0101', otp_code: '234567' };
    const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const settings = {
      theme: 'dark',
      jwt_auth: { verification_key: publicKey.export({ type: 'spki', format: 'pem' }) },
      allowed_origins: ['https://acme.example'],
      test_accounts: [account],
      identity_tokens: true,
      device_flow: { public_clients: true, verification_uri: 'https://acme.example/device' },
      deposit_configs: [
        { routes: [{ source: { mode: 'all' }, destination: { asset: 'usdc', chain: 'base' } }] },
      ],
      smart_account_factory: {
        factory_address: `0x${'12'.repeat(20)}`,
        implementation_address: `0x${'34'.repeat(20)}`,
      },
      identity_changes: { wait_hours: 24 },
      require_request_expiry: false,
      single_use_signatures: true,
      block_test_logins: false,
      block_linking_test_accounts: true,
      archive_requires_owner: true,
      policy_parts_require_owner: true,
      strict_methods: true,
    };
    const { body: document } = await control('GET', '/openapi.json');
    const { SandboxAppSettings } = (
      document.components as { schemas: Record<string, { properties?: object }> }
    ).schemas;
    expect(Object.keys(settings)).toEqual(
      expect.arrayContaining(Object.keys(SandboxAppSettings?.properties ?? {})),
    );
    expect((await control('PUT', path, { settings })).status).toBe(200);
    const shown = async () => {
      const { body } = await control('GET', '/apps');
      return (body.data as { id: string; settings: object }[]).find(({ id }) => id === acmeApp.id)!.settings;
    };
    const before = await shown();
    expect(Object.keys(before)).toEqual(expect.arrayContaining(Object.keys(settings)));
    expect((await control('PUT', path, { settings: before })).body).toMatchObject({ settings: before });
    expect(await shown()).toEqual(before);
    // The code is still the same.
    const body = { email: account.email, code: account.otp_code };
    expect((await call(sandbox, 'authenticatePasswordless', { body })).status).toBe(200);
    // Without a code and without a known id, it is refused.
    const { otp_code: _, ...codeless } = account;
    for (const unknown of [codeless, { ...codeless, id: 'unknown' }]) {
      expect(await control('PUT', path, { settings: { test_accounts: [unknown] } })).toMatchObject({
        ...{ status: 400, body: { error: expect.stringContaining('/settings/test_accounts/0/otp_code') } },
      });
    }
    const made = await control('POST', '/apps', { settings: { test_accounts: [{ ...codeless, id: 'x' }] } });
    expect(made.status).toBe(400);
    await sandbox.reset();
  });

  test('an app is created, and its credentials work immediately and only for itself', async () => {
    const made = await control('POST', '/apps', {
      name: 'Globex',
      settings: { allowed_origins: ['https://globex.example'] },
    });
    expect(made).toEqual({
      status: 200,
      body: {
        id: expect.stringMatching(/^c[0-9a-z]{24}$/),
        name: 'Globex',
        created_at_ms: startMs,
        settings: { allowed_origins: ['https://globex.example'] },
        secret: expect.any(String),
      },
    });
    const globex = { ...sandbox, appId: made.body.id as string, appSecret: made.body.secret as string };
    expect((await call(globex, 'listWallets', {})).body.data).toEqual([]);
    const listed = await control('GET', '/apps');
    expect((listed.body.data as { id: string }[]).map(({ id }) => id).sort()).toEqual(
      [acmeApp.id, globex.appId].sort(),
    );
    expect(JSON.stringify(listed.body)).not.toContain(globex.appSecret);
  });

  test('a trusted token key is a setting of the app', async () => {
    const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const pem = publicKey.export({ type: 'spki', format: 'pem' }).toString();
    await using trusting = await startSandbox({ jwtPublicKeyPem: pem });
    const path = '/_sandbox/apps';
    const { body } = await trusting.dispatcher.request({ origin: trusting.baseUrl, path, method: 'GET' });
    const { data } = (await body.json()) as { data: { settings: object }[] };
    expect(data[0]?.settings).toMatchObject({ jwt_auth: { verification_key: pem, user_id_claim: 'sub' } });
  });

  test('an id is unique', async () => {
    const { status, body } = await control('POST', '/apps', { id: acmeApp.id });
    expect({ status, code: body.code }).toEqual({ status: 409, code: 'resource_already_exists' });
  });

  test('settings are changed individually and validated', async () => {
    const path = `/apps/${acmeApp.id}`;
    await control('PUT', path, { settings: { theme: 'dark', allowed_origins: ['https://acme.example'] } });
    const changed = await control('PUT', path, {
      name: 'Acme Ltd',
      settings: { theme: null, test_accounts: null },
    });
    expect(changed.body).toEqual({
      id: acmeApp.id,
      name: 'Acme Ltd',
      created_at_ms: startMs,
      settings: {
        allowed_origins: ['https://acme.example'],
        device_flow: { public_clients: true },
        // That of the simulated login.
        jwt_auth: {
          ...{ verification_key: expect.stringContaining('PUBLIC KEY'), user_id_claim: 'sub', audiences: [] },
        },
        deposit_configs: acmeApp.settings.deposit_configs,
      },
    });
    const wrong = await control('PUT', path, { settings: { allowed_origins: ['acme'] } });
    expect({ status: wrong.status, code: wrong.body.code }).toEqual({ status: 400, code: 'invalid_data' });
    expect((await control('PUT', '/apps/unknown', { name: 'x' })).status).toBe(404);
  });
});

describe('other callers receive 404 from the control plane', () => {
  test.each([
    ['a page of another site', { origin: 'https://evil.example' }],
    ['a name that was made to point here', { host: 'evil.example' }],
  ])('other callers receive 404 from the control plane: %s', async (_who, headers) => {
    expect(await control('GET', '/clock', undefined, headers)).toEqual({
      status: 404,
      body: { error: 'Not found' },
    });
  });

  test('pages of the sandbox itself are admitted', async () => {
    expect((await control('GET', '/clock', undefined, { origin: sandbox.baseUrl })).status).toBe(200);
  });

  test('an unknown route and a wrong method have different errors', async () => {
    expect((await control('GET', '/nothing')).status).toBe(404);
    expect((await control('GET', '/reset')).status).toBe(405);
  });
});

test('wallet actions and transactions of all wallets are listed, also after their events have expired', async () => {
  const wallet = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
  const { id: wallet_id, address } = wallet.body;
  await fund(sandbox, address, { chain: 'base', asset: 'eth', rawAmount: 10n ** 19n });
  const source = { asset: 'eth', chain: 'base', amount: '0.1' } as const;
  const destination = { address: `0x${'11'.repeat(20)}` };
  const made: string[] = [];
  for (let count = 0; count < 2; count += 1) {
    const { body } = await call(sandbox, 'transferFromWallet', {
      path: { wallet_id },
      body: { source, destination },
    });
    made.unshift(body.id);
    await control('PUT', '/clock', { advance_ms: 60_000 });
  }
  await control('PUT', '/clock', { advance_ms: 31 * 86_400_000 });
  for (const [list, key] of [
    ['wallet_actions', 'type'],
    ['transactions', 'caip2'],
  ] as const) {
    const { body: all } = await control('GET', `/${list}`);
    const rows = all.data as Record<string, unknown>[];
    expect(rows.map((row) => [row.wallet_id, row[key]])).toEqual(
      Array(2).fill([wallet_id, list === 'transactions' ? 'eip155:8453' : 'transfer']),
    );
    const { body: first } = await control('GET', `/${list}?limit=1`);
    const { body: second } = await control('GET', `/${list}?limit=1&cursor=${String(first.next_cursor)}`);
    expect([first.data, second.data, second.next_cursor]).toEqual([[rows[0]], [rows[1]], null]);
    expect((await control('GET', `/${list}?cursor=nothing`)).status).toBe(400);
  }
  const { body: actions } = await control('GET', '/wallet_actions');
  expect((actions.data as { id: string }[]).map(({ id }) => id)).toEqual(made);
});
