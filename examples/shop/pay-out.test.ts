import { type SandboxContext, sandboxFixtures } from 'custos/testing/fixtures';
import { test as base, expect } from 'vitest';
import { payOut, RefundRefusedError } from './pay-out.ts';

const customer = '0x742D35CC6634c0532925A3b844BC9E7595F0BEb0';
const walletId = 'ext_wal_acme-ethereum';
const refund = { orderId: '2041', address: customer, amount: '12.5' };

/** A shop with 100 USDC, and ether for gas. */
const test = base.extend<SandboxContext>(sandboxFixtures()).extend('settings', async ({ sandbox }) => {
  await sandbox.faucet(walletId, { chain: 'base', amount: '1' });
  await sandbox.faucet(walletId, { chain: 'base', asset: 'usdc', amount: '100' });
  const { baseUrl, appId, appSecret, fetch } = sandbox;
  return { baseUrl, appId, appSecret, walletId, fetch };
});

async function balance(sandbox: SandboxContext['sandbox']): Promise<string | undefined> {
  const query = { chain: 'base', asset: 'usdc' } as const;
  const { balances } = await sandbox.call('getWalletBalance', { path: { wallet_id: walletId }, query });
  return balances[0]?.raw_value;
}

test('a refund is paid', async ({ sandbox, settings }) => {
  const id = await payOut(settings, refund);
  await sandbox.clock.advance(60_000);
  const done = await sandbox.waitForEvent('wallet_action.transfer.succeeded', {
    where: { wallet_action_id: id },
  });
  expect(done.payload).toMatchObject({ status: 'succeeded' });
  expect(await balance(sandbox)).toBe('87500000');
});

test('a refund whose response was lost is paid once', async ({ sandbox, settings }) => {
  await sandbox.faults.add({ effect: 'cut_after_commit', operation: 'transferFromWallet', count: 1 });
  await payOut(settings, refund);
  await sandbox.clock.advance(60_000);
  expect(await balance(sandbox)).toBe('87500000');
  expect(await sandbox.events('wallet_action.transfer.created')).toHaveLength(1);
});

test('a refund is tried again while the service is down, and given up in the end', async ({
  sandbox,
  settings,
}) => {
  await sandbox.faults.add({
    effect: 'error',
    code: 'internal_error',
    operation: 'transferFromWallet',
    count: 2,
  });
  await payOut(settings, refund);
  await sandbox.faults.add({ effect: 'error', code: 'internal_error', operation: 'transferFromWallet' });
  await expect(payOut(settings, { ...refund, orderId: '2042' })).rejects.toThrow('answered 500');
});

test('a refund that the wallet cannot pay is refused', async ({ settings }) => {
  const tooMuch = payOut(settings, { ...refund, amount: '100.01' });
  await expect(tooMuch).rejects.toThrow(RefundRefusedError);
});
