import { get } from 'node:https';
import { test as base, describe, expect } from 'vitest';
import { type SandboxContext, sandboxFixtures } from '../../../src/testing/fixtures.ts';
import { matchersFor, sandboxMatchers } from '../../../src/testing/matchers.ts';
import { alice, bob, type Caller, carol, startSandbox } from '../../../src/testing/testing.ts';

expect.extend(sandboxMatchers);

declare module 'vitest' {
  interface Matchers<R extends void | Promise<void> = void | Promise<void>, T = unknown> {
    toMatchContract(operation?: string): Promise<void>;
    toHaveEvent(type: string, where?: Record<string, string>): Promise<void>;
    toBeRefusedWith(code: string, data?: Record<string, unknown>): Promise<void>;
    toHaveBalance(
      walletId: string,
      amount: string,
      of?: { readonly chain?: string; readonly asset?: string },
    ): Promise<void>;
  }
}

const test = base.extend<SandboxContext>(sandboxFixtures({ clock: 'frozen' }));

const acme = { wallet_id: 'ext_wal_acme-ethereum' };
const signing = (wallet: string) => ({
  path: { wallet_id: wallet },
  body: { method: 'personal_sign', params: { message: 'Hello', encoding: 'utf-8' } } as const,
});

async function countWallets(caller: Caller): Promise<number> {
  return (await caller.call('listWallets')).data.length;
}

test('the clock of a sandbox runs, or is frozen at the time that its test chooses', async () => {
  const startedMs = Date.now();
  await using running = await startSandbox({ seedData: false });
  expect(await running.clock.now()).toBeGreaterThanOrEqual(startedMs);
  const time = new Date('2027-03-01T09:00:00Z');
  await using frozen = await startSandbox({ seedData: false, clock: time });
  expect(await frozen.clock.now()).toBe(time.getTime());
});

describe('a sandbox of the testing library', () => {
  test('a sandbox of the testing library is called with types, and each test gets it as it started', async ({
    sandbox,
  }) => {
    const wallet = await sandbox.call('createWallet', { body: { chain_type: 'solana' } });
    expect(wallet.chain_type).toBe('solana');
    expect(await countWallets(sandbox)).toBe(5);
  });

  test('a sandbox of the testing library does not keep what an earlier test created', async ({ sandbox }) => {
    expect(await countWallets(sandbox)).toBe(4);
  });

  test('a sandbox of the testing library signs as its users; refusals say what is missing', async ({
    sandbox,
  }) => {
    const signed = await sandbox.as(alice).call('walletRpc', signing('ext_wal_alice'));
    expect(signed.method).toBe('personal_sign');
    const refused = sandbox.as(bob).call('walletRpc', signing('ext_wal_alice'));
    await expect(refused).rejects.toMatchObject({ name: 'CallRefusedError', status: 401 });
    const { status, error } = await sandbox.attempt('getWallet', { path: { wallet_id: 'ext_wal_nobody' } });
    expect({ status, error: error?.error }).toEqual({ status: 404, error: 'Wallet not found' });
    for (const signers of [
      [alice, bob],
      [carol, alice],
    ]) {
      const update = { path: { wallet_id: 'ext_wal_treasury' }, body: { display_name: 'Treasury 2' } };
      expect((await sandbox.as(...signers).attempt('updateWallet', update)).status).toBe(200);
    }
  });

  test('a sandbox of the testing library has snapshots, a clock, a faucet, blocks and faults', async ({
    sandbox,
  }) => {
    await sandbox.snapshot('before');
    const funded = await sandbox.faucet(acme.wallet_id, { chain: 'base', amount: '2' });
    expect(funded.raw_balance).toBe('2000000000000000000');
    await sandbox.mine();
    await sandbox.load('before');
    const { balances } = await sandbox.call('getWalletBalance', {
      path: acme,
      query: { chain: 'base', asset: 'eth' },
    });
    expect(balances[0]?.raw_value).toBe('0');
    expect(await sandbox.clock.advance(60_000)).toBe(Date.UTC(2026, 0, 1, 0, 1));
    expect(await sandbox.clock.set(new Date('2026-07-01T00:00:00Z'))).toBe(Date.UTC(2026, 6, 1));
    await sandbox.faults.add({ effect: 'error', code: 'internal_error', operation: 'getWallet', count: 1 });
    expect((await sandbox.attempt('getWallet', { path: acme })).status).toBe(500);
    expect((await sandbox.attempt('getWallet', { path: acme })).status).toBe(200);
    expect(await sandbox.faults.clear()).toBe(1);
  });

  test('a sandbox of the testing library waits for events', async ({ sandbox }) => {
    const waiting = sandbox.waitForEvent('user.created', {
      where: { 'user.linked_accounts.0.address': 'dora@example.com' },
    });
    await sandbox.call('createUser', {
      body: { linked_accounts: [{ type: 'email', address: 'carl@example.com' }] },
    });
    await sandbox.call('createUser', {
      body: { linked_accounts: [{ type: 'email', address: 'dora@example.com' }] },
    });
    expect((await waiting).payload).toMatchObject({ type: 'user.created' });
    await expect(sandbox).toHaveEvent('user.created');
    await expect(sandbox).not.toHaveEvent('wallet.archived');
    await expect(expect(sandbox).toHaveEvent('user.created', { type: 'other' })).rejects.toThrow(
      /2 of this type with other values: type: expected "other", got "user.created"/,
    );
    await expect(expect(sandbox).toHaveEvent('wallet.archived')).rejects.toThrow(
      'none of this type, but user.created',
    );
    await expect(sandbox.waitForEvent('wallet.archived', { timeoutMs: 50 })).rejects.toThrow(
      'no event `wallet.archived` within 50 ms',
    );
  });

  test('a sandbox of the testing library is trusted by its own fetch, and by the process on request', async ({
    sandbox,
  }) => {
    const answer = await sandbox.fetch(`${sandbox.baseUrl}/openapi.json`);
    expect(answer.status).toBe(200);
    // As generated clients call it.
    const credentials = Buffer.from(`${sandbox.appId}:${sandbox.appSecret}`).toString('base64');
    const created = await sandbox.fetch(
      new Request(`${sandbox.baseUrl}/v1/wallets`, {
        method: 'POST',
        headers: {
          authorization: `Basic ${credentials}`,
          'service-app-id': sandbox.appId,
          'content-type': 'application/json',
        },
        body: JSON.stringify({ chain_type: 'solana' }),
      }),
    );
    expect(await created.json()).toMatchObject({ chain_type: 'solana' });
    const status = () =>
      new Promise((resolve, reject) => {
        get(`${sandbox.baseUrl}/openapi.json`, { agent: false }, (response) => {
          response.destroy();
          resolve(response.statusCode);
        }).on('error', reject);
      });
    await expect(status()).rejects.toThrow(/certificate/);
    sandbox.trust();
    expect(await status()).toBe(200);
    expect((await fetch(`${sandbox.baseUrl}/openapi.json`)).status).toBe(200);
  });

  test('a refusal is compared by code and data; a failure names each difference and the page of the request', async ({
    sandbox,
  }) => {
    const refused = await sandbox.attempt('walletRpc', signing('ext_wal_alice'));
    expect(refused.inspectorUrl).toBe(`${sandbox.baseUrl}/#/requests/${refused.headers['x-request-id']}`);
    await expect(refused).toBeRefusedWith(refused.error?.code ?? '');
    await expect(refused).not.toBeRefusedWith('policy_violation');
    const failure = expect(expect(refused).toBeRefusedWith('policy_violation', { rule: 'Messages' })).rejects;
    await failure.toThrow(
      /code: expected `policy_violation`, got .*; rule: expected `Messages`, got \[\].*\n {2}https:.*#\/requests\//,
    );
    const transaction = { to: `0x${'1'.repeat(40)}`, value: '0xde0b6b3a7640000', chain_id: 8453 } as const;
    const denied = await sandbox.as(alice, bob).attempt('walletRpc', {
      path: { wallet_id: 'ext_wal_treasury' },
      body: { method: 'eth_signTransaction', params: { transaction } },
    });
    await expect(denied).toBeRefusedWith('policy_violation', { rule: 'Transactions up to 0.1 ether' });
    await expect(denied).not.toBeRefusedWith('policy_violation', { rule: 'Messages' });
  });

  test('a balance is compared in units', async ({ sandbox }) => {
    await sandbox.faucet('ext_wal_alice', { chain: 'base', amount: '2.5' });
    await expect(sandbox).toHaveBalance('ext_wal_alice', '2.5');
    await expect(sandbox).toHaveBalance('ext_wal_alice', '0', { asset: 'usdc' });
    await expect(expect(sandbox).toHaveBalance('ext_wal_alice', '3')).rejects.toThrow(
      'expected ext_wal_alice to have 3 eth on base, got 2.5',
    );
  });

  test('a sandbox of the testing library answers as the contract says; anything else does not match', async ({
    sandbox,
  }) => {
    const created = await sandbox.attempt('createWallet', { body: { chain_type: 'ethereum' } });
    await expect(created).toMatchContract();
    await expect(await sandbox.attempt('getWallet', { path: { wallet_id: 'none' } })).toMatchContract();
    await expect({ ...created, data: { ...created.data, chain_tipe: 1 } }).not.toMatchContract();
    await expect({ ...created, status: 418 }).not.toMatchContract();
    const fetched = await sandbox.fetch(`${sandbox.baseUrl}/v1/wallets`);
    expect(fetched.status).toBe(401);
    await expect(fetched).toMatchContract('listWallets');
    expect(await fetched.json()).toMatchObject({ code: 'missing_or_invalid_token' });
  });
});

base('responses of a sandbox with a prefix are compared under its names', async () => {
  await using sandbox = await startSandbox({ prefix: 'acme' });
  const user = await sandbox.attempt('createUser', {
    body: { linked_accounts: [{ type: 'email', address: 'dora@example.com' }] },
  });
  expect(user.data?.id).toMatch(/^did:acme:/);
  const judge = (prefix: string) => matchersFor(prefix).toMatchContract(user);
  expect([(await judge('acme')).pass, (await judge('service')).pass]).toEqual([true, false]);
});

base('many run at once, each with its own state, soon after the first', async () => {
  await using first = await startSandbox();
  const others = await Promise.all(Array.from({ length: 3 }, () => startSandbox({ seedData: false })));
  await first.call('createWallet', { body: { chain_type: 'ethereum' } });
  expect(await Promise.all(others.map(countWallets))).toEqual([0, 0, 0]);
  await Promise.all(others.map((other) => other.close()));
});
