import { getAddress, type Hex, toHex } from 'viem';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { addEarnVault } from '../../../src/admin/earn-vaults.ts';
import type { Wallet } from '../../../src/generated/schemas.ts';
import { type Anvil, startAnvil } from '../../support/anvil.ts';
import { call, refusal } from '../../support/call.ts';
import { type EarnContracts, earnContractsOn } from '../../support/nodes/earn-contracts.ts';
import {
  answerAbout,
  type GivenReward,
  type MerklService,
  startMerkl,
  treeOf,
} from '../../support/nodes/merkl-service.ts';
import { temporaryFolder } from '../../support/run-custos.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import { waitSeconds } from '../../support/wait-seconds.ts';

// OpenZeppelin's vault and a distributor of rewards, on a real node.
const usdc: Hex = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';

let anvil: Anvil;
let sandbox: TestSandbox;
let folder: string;
let vaultAddress: Hex;
let wallet: Wallet;
let contracts: EarnContracts;
let distributor: Hex;
let merkl: MerklService;
let given: readonly GivenReward[] = [];

const ask = (to: Hex, functionName: string, ...args: unknown[]) =>
  contracts.read(to, 'FeeVault', functionName, ...args);
const mintUsdc = (to: string, amount: bigint) => contracts.call(usdc, 'Token', 'mint', to, amount);

beforeAll(async () => {
  anvil = await startAnvil(8453);
  contracts = earnContractsOn(anvil);
  await contracts.installToken(usdc, 6);
  vaultAddress = await contracts.deploy('Vault', usdc, 12);
  distributor = await contracts.deploy('Distributor');
  merkl = await startMerkl((path) => ({
    text: JSON.stringify(answerAbout(path.split('/')[3]!, 8453, given)),
  }));
  folder = temporaryFolder();
  sandbox = await startSandbox({
    ...{ dataFolder: folder, rpc: [{ caip2: 'eip155:8453', urls: [anvil.url] }] },
    rewards: { distributors: new Map([['eip155:8453', distributor]]), url: merkl.url, apiKey: undefined },
  });
  wallet = (await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } })).body;
  await anvil.ask('anvil_setBalance', wallet.address, toHex(10n ** 18n));
  await mintUsdc(wallet.address, 10_000_000n);
});
afterAll(async () => {
  await sandbox[Symbol.asyncDispose]();
  await merkl[Symbol.asyncDispose]();
  await anvil[Symbol.asyncDispose]();
});

const add = (address: string, provider = 'morpho') =>
  addEarnVault(
    { kind: 'folder', folder },
    { rpc: [{ caip2: 'eip155:8453', urls: [anvil.url] }] },
    { appId: sandbox.appId, chain: 'base', address, provider, adminWalletId: wallet.id, feeBps: 0 },
  );

async function ended(id: string): Promise<Record<string, unknown>> {
  for (let round = 0; round < 5; round += 1) {
    await anvil.ask('evm_mine');
    await waitSeconds(sandbox, 10);
  }
  const path = { wallet_id: wallet.id, action_id: id };
  return (await call(sandbox, 'getWalletAction', { path })).body as unknown as Record<string, unknown>;
}

test('an operator sets up a real vault, and deposits and withdrawals count what it does to the unit', async () => {
  await expect(add(usdc)).rejects.toMatchObject({ code: 'invalid_data' });
  const vault = await add(vaultAddress);
  expect(vault).toMatchObject({ name: 'USDC on base', asset_address: usdc, asset_decimals: 6 });
  await expect(add(vaultAddress)).rejects.toMatchObject({ code: 'resource_conflict' });

  const path = { wallet_id: wallet.id };
  const position = async () =>
    (await call(sandbox, 'getEthereumEarnPosition', { path, query: { vault_id: vault.id } })).body;

  const { body: deposit } = await call(sandbox, 'depositEthereumEarn', {
    path,
    body: { vault_id: vault.id, amount: '7.5' },
  });
  const deposited = await ended(deposit.id);
  const shares = await ask(vaultAddress, 'balanceOf', wallet.address);
  expect(deposited).toMatchObject({ status: 'succeeded', share_amount: String(shares) });
  expect(shares).toBe(7_500_000n * 10n ** 12n);
  // A gift to the vault raises the worth of its shares.
  await mintUsdc(vaultAddress, 1_000_000n);
  const worth = await ask(vaultAddress, 'convertToAssets', shares);
  expect(await position()).toEqual({
    asset: { address: usdc, symbol: 'USDC', decimals: 6 },
    ...{ shares_in_vault: String(shares), assets_in_vault: String(worth) },
    ...{ total_deposited: '7500000', total_withdrawn: '0' },
  });
  const { body: view } = await call(sandbox, 'getEthereumEarnVault', { path: { vault_id: vault.id } });
  expect(view).toMatchObject({ tvl_usd: 8.5, available_liquidity_usd: 8.5, user_apy: null, app_apy: null });

  const { body: withdrawal } = await call(sandbox, 'withdrawEthereumEarn', {
    path,
    body: { vault_id: vault.id, raw_amount: String(worth) },
  });
  expect(await ended(withdrawal.id)).toMatchObject({
    ...{ status: 'succeeded', raw_amount: String(worth), share_amount: String(shares) },
  });
  expect(await ask(vaultAddress, 'balanceOf', wallet.address)).toBe(0n);
  expect(await ask(usdc, 'balanceOf', wallet.address)).toBe(2_500_000n + worth);
  expect(await position()).toMatchObject({ shares_in_vault: '0', total_withdrawn: String(worth) });
});

test('rewards by Merkl are claimed as far as the distributor accepts their proof, and only once', async () => {
  const path = { wallet_id: wallet.id };
  const token = getAddress(await contracts.deploy('Token', 18));
  const entry = { token_address: token, token_symbol: 'RWD', token_decimals: 18 };
  const other = '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0';
  const list = async () =>
    (await call(sandbox, 'getEthereumEarnIncentiveRewards', { path, query: { chain: 'base' } })).body.rewards;
  expect(await list()).toEqual([]);
  const honest = [
    { user: wallet.address, token, amount: 25n * 10n ** 17n },
    { user: other, token, amount: 1n },
  ];
  await contracts.call(token, 'Token', 'mint', distributor, 10n ** 19n);
  await contracts.call(distributor, 'Distributor', 'setRoot', treeOf(honest).root);
  // More than the root of the distributor says: there is no proof for it.
  given = honest.map((reward) => ({ ...reward, amount: reward.amount * 3n }));
  expect(await list()).toEqual([]);
  const nothing = await refusal(sandbox, 'claimEthereumEarnIncentive', { path, body: { chain: 'base' } });
  expect(nothing).toMatchObject({ status: 400, body: { code: 'invalid_request' } });

  given = honest;
  const unclaimed = { amount_claimed: '0', amount_unclaimed: '2500000000000000000' };
  expect(await list()).toEqual([{ ...entry, ...unclaimed }]);
  const { body: claim } = await call(sandbox, 'claimEthereumEarnIncentive', {
    path,
    body: { chain: 'base' },
  });
  expect(await ended(claim.id)).toMatchObject({
    ...{ status: 'succeeded', chain: 'base', rewards: [{ ...entry, amount: '2500000000000000000' }] },
  });
  expect(await contracts.read(token, 'Token', 'balanceOf', wallet.address)).toBe(25n * 10n ** 17n);
  // The API still says that nothing was claimed.
  expect(await list()).toEqual([{ ...entry, amount_claimed: '2500000000000000000', amount_unclaimed: '0' }]);
  const again = await refusal(sandbox, 'claimEthereumEarnIncentive', { path, body: { chain: 'base' } });
  expect(again).toMatchObject({ status: 400, body: { code: 'invalid_request' } });
});

test('fees that a real vault has kept are collected by its admin', async () => {
  const path = { wallet_id: wallet.id };
  const address = await contracts.deploy('FeeVault', usdc, wallet.address);
  const vault = await add(address, 'aave');
  await mintUsdc(address, 1_200_000n);
  await contracts.call(address, 'FeeVault', 'keepFees', 1_200_000n);
  const { body: view } = await call(sandbox, 'getEthereumEarnVault', { path: { vault_id: vault.id } });
  expect(view).toMatchObject({ available_fees: '1200000', tvl_usd: 0, available_liquidity_usd: 0 });
  const held = await contracts.read(usdc, 'Token', 'balanceOf', wallet.address);
  const body = { vault_id: vault.id };
  const { body: collection } = await call(sandbox, 'collectEthereumEarnFees', { path, body });
  expect(await ended(collection.id)).toMatchObject({
    status: 'succeeded',
    raw_amount: '1200000',
    amount: '1.2',
  });
  expect(await contracts.read(usdc, 'Token', 'balanceOf', wallet.address)).toBe(held + 1_200_000n);
});

test('while Merkl does not respond, rewards are unavailable and nothing is signed', async () => {
  await merkl[Symbol.asyncDispose]();
  const path = { wallet_id: wallet.id };
  const query = { chain: 'base' };
  expect(await refusal(sandbox, 'getEthereumEarnIncentiveRewards', { path, query })).toMatchObject({
    ...{ status: 503, body: { error: 'the rewards on `base` could not be read' } },
  });
  expect(await refusal(sandbox, 'claimEthereumEarnIncentive', { path, body: query })).toMatchObject({
    status: 400,
    body: {
      code: 'transaction_broadcast_failure',
      error: 'the rewards on `base` could not be read; nothing was signed or sent',
    },
  });
  merkl = await startMerkl(() => ({ text: '[]' }));
});
