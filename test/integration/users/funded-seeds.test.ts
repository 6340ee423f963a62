import { expect, test } from 'vitest';
import { acmeApp } from '../../../mocks/apps.ts';
import { aliceKey } from '../../../mocks/authorization-keys.ts';
import { seededNames } from '../../../mocks/wallets.ts';
import type { Sandbox } from '../../../src/compose/sandbox.ts';
import { newestSequence } from '../../../src/domain/base/events/events.ts';
import { startSandbox as startTestSandbox } from '../../../src/testing/testing.ts';
import { startSandbox } from '../../support/sandbox.ts';

async function addressesIn(sandbox: Sandbox): Promise<Record<string, string>> {
  const wallets = (await sandbox.fundedWallets?.()) ?? [];
  return Object.fromEntries(wallets.map(({ name, address }) => [name, address]));
}

test('a funded sandbox has ten wallets with gas and stablecoins, and balanced books', async () => {
  await using sandbox = await startSandbox({ funds: true });
  const wallets = (await sandbox.fundedWallets?.()) ?? [];
  expect(wallets.map(({ name }) => name)).toEqual([
    ...['Acme', 'Alice', 'Treasury', 'Acme on Solana', 'Bob', 'Carol'],
    ...['Alice on Solana', 'Bob on Solana', 'Acme on Tron', 'Alice on Tron'],
  ]);
  const onEvm = { base: '10 ETH, 10,000 USDC', ethereum: '10 ETH, 10,000 USDC' };
  expect(wallets.find(({ name }) => name === 'Alice')?.balances).toEqual(onEvm);
  expect(wallets.at(-2)?.balances).toEqual({ tron: '10,000 TRX, 10,000 USDT' });
  expect(wallets.at(-3)?.balances).toEqual({ solana: '100 SOL, 10,000 USDC' });

  for (const { given, minted, held } of await sandbox.chains.books()) {
    expect(Object.values(held).reduce((sum = 0n, amount = 0n) => sum + amount, 0n)).toBe(given + minted);
  }
  await sandbox.settle();
  // Funds of the seeds are no deposits.
  expect(await newestSequence(sandbox.database.orm.em.fork())).toBe(0);
});

test('a seed gives the same ids and keys with and without funds, also after a reset', async () => {
  const facts = async (funds: boolean) => {
    await using sandbox = await startSandbox({ funds });
    const next = async () => sandbox.services.ids.cuid2();
    const before = [await addressesIn(sandbox), await next()];
    await sandbox.reset();
    expect([await addressesIn(sandbox), await next()]).toEqual(before);
    return before;
  };
  const [funded, bare] = [await facts(true), await facts(false)];
  expect(funded[1]).toBe(bare[1]);
  expect(Object.keys(funded[0] as object)).toHaveLength(seededNames.length);
  expect(bare[0]).toEqual({});
});

test('Alice owns wallet Alice by her key and as a user, and the list of her wallets has it', async () => {
  await using sandbox = await startTestSandbox();
  const session = await sandbox.signIn('alice');
  const owned = await sandbox.call('listWallets', { query: { user_id: session.userId } });
  expect(owned.data.map(({ external_id }) => external_id)).toEqual(['alice']);
  const message = { method: 'personal_sign', params: { message: 'Hello', encoding: 'utf-8' } } as const;
  const input = { path: { wallet_id: 'ext_wal_alice' }, body: message };
  const byKey = await sandbox.as(aliceKey).call('walletRpc', input);
  const asUser = await sandbox.as(await session.signer()).call('walletRpc', input);
  expect(asUser).toEqual(byKey);
  expect((await sandbox.attempt('walletRpc', input)).status).toBe(401);
});

test('each new wallet of a sandbox that funds them has money in the next request', async () => {
  await using sandbox = await startTestSandbox({ fundNewWallets: true, appId: acmeApp.id });
  for (const [chainType, chain, asset] of [
    ['ethereum', 'base', 'usdc'],
    ['solana', 'solana', 'usdc'],
    ['tron', 'tron', 'usdt'],
  ] as const) {
    const { id } = await sandbox.call('createWallet', { body: { chain_type: chainType } });
    const { balances } = await sandbox.call('getWalletBalance', {
      path: { wallet_id: id },
      query: { chain, asset },
    });
    expect(balances).toMatchObject([{ chain, asset, display_values: { [asset]: '10000' } }]);
  }
  // Other chain types have no faucet of this kind, and their wallets are created all the same.
  await sandbox.call('createWallet', { body: { chain_type: 'sui' } });
});
