import { expect, test } from 'vitest';
import { call } from '../../support/call.ts';
import { fund } from '../../support/fund.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

async function accountOf(sandbox: TestSandbox, ...externalIds: string[]) {
  const wallets = [];
  for (const externalId of externalIds) {
    wallets.push((await call(sandbox, 'getWallet', { path: { wallet_id: `ext_wal_${externalId}` } })).body);
  }
  const body = { wallet_ids: wallets.map(({ id }) => id) };
  const { body: account } = await call(sandbox, 'createAccount', { body });
  return {
    path: { account_id: account.id },
    addresses: wallets.map(({ address }) => address) as [string, string, string],
  };
}

const usd = (value: string) => ({ value, currency: 'usd' });
const nothing = { total: usd('0'), assets: [], assets_by_chain: [] };

test('an account of empty wallets is worth nothing', async () => {
  await using sandbox = await startSandbox();
  const { path } = await accountOf(sandbox, 'acme-ethereum', 'acme-solana');
  expect((await call(sandbox, 'getAccountBalance', { path })).body).toEqual(nothing);
  expect((await call(sandbox, 'getAccountBalance', { path, query: { testnet_mode: true } })).body).toEqual(
    nothing,
  );
});

test('balances of wallets and chains are summed, by asset and by asset and chain', async () => {
  await using sandbox = await startSandbox();
  const { path, addresses } = await accountOf(sandbox, 'acme-ethereum', 'alice', 'acme-solana');
  const [acme, alice, solana] = addresses;
  await fund(sandbox, acme, { chain: 'ethereum', asset: 'eth', rawAmount: 400_000_000_000_000_001n });
  await fund(sandbox, alice, { chain: 'ethereum', asset: 'eth', rawAmount: 600_000_000_000_000_000n });
  await fund(sandbox, alice, { chain: 'base', asset: 'usdc', rawAmount: 100_000_000n });
  await fund(sandbox, solana, { chain: 'solana', asset: 'usdc', rawAmount: 2_400_000n });
  // 18 decimals here, 6 there.
  await fund(sandbox, acme, { chain: 'bsc', asset: 'usdc', rawAmount: 5n });
  await fund(sandbox, acme, { chain: 'sepolia', asset: 'eth', rawAmount: 7n * 10n ** 18n });

  const { body } = await call(sandbox, 'getAccountBalance', { path });
  const eth = { symbol: 'ETH', amount: '1.000000000000000001', price: usd('3000.00') };
  const usdc = { symbol: 'USDC', price: usd('1.00') };
  expect(body).toEqual({
    total: usd('3102.40'),
    assets: [eth, { ...usdc, amount: '102.400000000000000005' }],
    assets_by_chain: [
      { ...eth, chain_id: 'eip155:1' },
      { ...usdc, amount: '100', chain_id: 'eip155:8453' },
      { ...usdc, amount: '0.000000000000000005', chain_id: 'eip155:56' },
      { ...usdc, amount: '2.4', chain_id: 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp' },
    ],
  });
});

test('test networks are separate from main networks and are worth nothing', async () => {
  await using sandbox = await startSandbox();
  const { path, addresses } = await accountOf(sandbox, 'acme-ethereum');
  await fund(sandbox, addresses[0], { chain: 'base_sepolia', asset: 'usdc', rawAmount: 3_000_000n });
  expect((await call(sandbox, 'getAccountBalance', { path })).body).toEqual(nothing);
  const tested = { symbol: 'USDC', amount: '3', price: usd('0') };
  expect((await call(sandbox, 'getAccountBalance', { path, query: { testnet_mode: true } })).body).toEqual({
    total: usd('0'),
    assets: [tested],
    assets_by_chain: [{ ...tested, chain_id: 'eip155:84532' }],
  });
});

test('fractions of a cent are summed exactly and rounded once at the end', async () => {
  await using sandbox = await startSandbox();
  const { path, addresses } = await accountOf(sandbox, 'acme-ethereum', 'alice', 'acme-solana');
  for (const address of addresses.slice(0, 2)) {
    await fund(sandbox, address, { chain: 'base', asset: 'usdc', rawAmount: 4_000n });
  }
  // 0.004 + 0.004 dollars: each alone would be rounded away.
  expect((await call(sandbox, 'getAccountBalance', { path })).body.total).toEqual(usd('0.01'));
});

test('the balance of two wallets with the same key counts once', async () => {
  await using sandbox = await startSandbox();
  const { path, addresses } = await accountOf(sandbox, 'acme-ethereum', 'alice');
  await fund(sandbox, addresses[0], { chain: 'base', asset: 'eth', rawAmount: 10n ** 18n });
  await sandbox.database.orm.em
    .fork()
    .execute(`update wallets set address = '${addresses[0]}' where external_id = 'alice'`);
  expect((await call(sandbox, 'getAccountBalance', { path })).body.total).toEqual(usd('3000.00'));
});
