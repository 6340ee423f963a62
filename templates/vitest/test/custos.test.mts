import { alice } from 'custos/testing';
import { type SandboxContext, sandboxFixtures } from 'custos/testing/fixtures';
import { type SandboxMatchers, sandboxMatchers } from 'custos/testing/matchers';
import { test as base, expect, vi } from 'vitest';

expect.extend(sandboxMatchers);

declare module 'vitest' {
  interface Matchers<R extends void | Promise<void> = void | Promise<void>, T = unknown>
    extends SandboxMatchers {}
}

// The first test waits until the sandbox has started.
vi.setConfig({ testTimeout: 30_000 });

/** One sandbox for each worker, and each test gets it as it started. */
const test = base.extend<SandboxContext>(sandboxFixtures());

test('a wallet is created', async ({ sandbox }) => {
  const created = await sandbox.attempt('createWallet', { body: { chain_type: 'ethereum' } });
  await expect(created).toMatchContract();
  expect(created.data).toMatchObject({ chain_type: 'ethereum' });
});

test('only its owner signs with a wallet', async ({ sandbox }) => {
  const message = {
    path: { wallet_id: 'ext_wal_alice' },
    body: { method: 'personal_sign', params: { message: 'Hello', encoding: 'utf-8' } },
  } as const;
  const signed = await sandbox.as(alice).call('walletRpc', message);
  expect(signed).toMatchObject({ method: 'personal_sign' });
  const unsigned = await sandbox.attempt('walletRpc', message);
  expect(unsigned.status).toBe(401);
});

test('a transfer settles', async ({ sandbox }) => {
  const wallet = { wallet_id: 'ext_wal_acme-ethereum' };
  await sandbox.faucet(wallet.wallet_id, { chain: 'base', amount: '1' });
  await sandbox.call('transferFromWallet', {
    path: wallet,
    body: {
      source: { asset: 'eth', chain: 'base', amount: '0.25' },
      destination: { address: '0x742D35CC6634c0532925A3b844BC9E7595F0BEb0' },
    },
  });
  await sandbox.clock.advance(60_000);
  await expect(sandbox).toHaveEvent('wallet_action.transfer.succeeded');
});
