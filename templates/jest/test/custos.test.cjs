/**
 * The environment starts a sandbox for this file, and returns it to its start before each test.
 *
 * @jest-environment custos/testing/jest
 */

/** @type {{ sandbox: import('custos/testing').TestSandbox } & typeof import('custos/testing')} */
const { sandbox, alice, sandboxMatchers } = globalThis;

expect.extend(sandboxMatchers);

test('a wallet is created', async () => {
  const created = await sandbox.attempt('createWallet', { body: { chain_type: 'ethereum' } });
  await expect(created).toMatchContract();
  expect(created.data).toMatchObject({ chain_type: 'ethereum' });
});

test('only its owner signs with a wallet', async () => {
  const message = {
    path: { wallet_id: 'ext_wal_alice' },
    body: { method: 'personal_sign', params: { message: 'Hello', encoding: 'utf-8' } },
  };
  const signed = await sandbox.as(alice).call('walletRpc', message);
  expect(signed).toMatchObject({ method: 'personal_sign' });
  const unsigned = await sandbox.attempt('walletRpc', message);
  expect(unsigned.status).toBe(401);
});

test('a transfer settles', async () => {
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
}, 20_000);
