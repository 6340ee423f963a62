import { expect, test } from 'vitest';
import { usdcVault } from '../../../mocks/earn-vaults.ts';
import { call } from '../../support/call.ts';
import { fund } from '../../support/fund.ts';
import { temporaryFolder } from '../../support/run-custos.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import { waitSeconds } from '../../support/wait-seconds.ts';

const path = { wallet_id: 'ext_wal_acme-ethereum' };
const query = { vault_id: usdcVault.id };
const vaultOf = async (sandbox: TestSandbox) =>
  (await call(sandbox, 'getEthereumEarnVault', { path: query })).body;
const positionOf = async (sandbox: TestSandbox) =>
  (await call(sandbox, 'getEthereumEarnPosition', { path, query })).body;

test('the vault of the seed data takes deposits at once, and outlives restarts and resets', async () => {
  const dataFolder = temporaryFolder();
  const first = await startSandbox({ dataFolder });
  const { id, address } = (await call(first, 'getWallet', { path })).body;
  expect(await vaultOf(first)).toMatchObject({
    ...{ id: usdcVault.id, provider: 'aave', name: 'USDC prime', vault_address: usdcVault.address },
    ...{ admin_wallet_id: id, admin_wallet_address: address, user_apy: 450, app_apy: 50, tvl_usd: 0 },
  });
  await fund(first, address, { chain: 'base', asset: 'eth', rawAmount: 10n ** 18n });
  await fund(first, address, { chain: 'base', asset: 'usdc', rawAmount: 50_000_000n });
  await call(first, 'depositEthereumEarn', { path, body: { ...query, amount: '20' } });
  await waitSeconds(first, 10);
  const deposited = { assets_in_vault: '20000000', total_deposited: '20000000' };
  expect(await positionOf(first)).toMatchObject(deposited);
  await first[Symbol.asyncDispose]();

  await using second = await startSandbox({ dataFolder });
  expect(await positionOf(second)).toMatchObject({ total_deposited: '20000000' });
  expect(await vaultOf(second)).toMatchObject({ tvl_usd: 20 });
  await second.reset();
  expect(await positionOf(second)).toMatchObject({ assets_in_vault: '0', total_deposited: '0' });
  const renewed = (await call(second, 'getWallet', { path })).body;
  expect(await vaultOf(second)).toMatchObject({ tvl_usd: 0, admin_wallet_address: renewed.address });
});
