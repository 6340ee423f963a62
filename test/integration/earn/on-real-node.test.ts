import { readFileSync } from 'node:fs';
import { type Abi, encodeDeployData, encodeFunctionData, type Hex, toHex } from 'viem';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { addEarnVault } from '../../../src/admin/earn-vaults.ts';
import type { Wallet } from '../../../src/generated/schemas.ts';
import { type Anvil, startAnvil } from '../../support/anvil.ts';
import { call } from '../../support/call.ts';
import { temporaryFolder } from '../../support/run-custos.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import { waitSeconds } from '../../support/wait-seconds.ts';

// OpenZeppelin's vault, compiled from test/vectors/contracts/vault.sol, on a real node.
const usdc: Hex = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const contracts = JSON.parse(
  readFileSync(new URL('../../vectors/contracts/golden/vault.json', import.meta.url), 'utf8'),
) as Record<'Token' | 'Vault', { abi: Abi; bytecode: Hex }>;

let anvil: Anvil;
let sandbox: TestSandbox;
let folder: string;
let vaultAddress: Hex;
let wallet: Wallet;

async function send(transaction: object): Promise<{ contractAddress: Hex }> {
  const [from] = (await anvil.ask('eth_accounts')) as Hex[];
  const hash = await anvil.ask('eth_sendTransaction', { from, gas: toHex(5_000_000n), ...transaction });
  await anvil.ask('evm_mine');
  return (await anvil.ask('eth_getTransactionReceipt', hash)) as { contractAddress: Hex };
}

const deploy = async (name: 'Token' | 'Vault', args: unknown[]): Promise<Hex> =>
  (await send({ data: encodeDeployData({ ...contracts[name], args } as never) })).contractAddress;

const ask = async (to: Hex, functionName: string, ...args: unknown[]): Promise<bigint> => {
  const data = encodeFunctionData({ abi: contracts.Vault.abi, functionName, args } as never);
  return BigInt((await anvil.ask('eth_call', { to, data }, 'latest')) as string);
};

const mintUsdc = (to: string, amount: bigint) =>
  send({
    to: usdc,
    data: encodeFunctionData({ abi: contracts.Token.abi, functionName: 'mint', args: [to, amount] } as never),
  });

beforeAll(async () => {
  anvil = await startAnvil(8453);
  await anvil.ask(
    'anvil_setCode',
    usdc,
    await anvil.ask('eth_getCode', await deploy('Token', [6]), 'latest'),
  );
  vaultAddress = await deploy('Vault', [usdc, 12]);
  folder = temporaryFolder();
  sandbox = await startSandbox({ dataFolder: folder, rpc: [{ caip2: 'eip155:8453', urls: [anvil.url] }] });
  wallet = (await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } })).body;
  await anvil.ask('anvil_setBalance', wallet.address, toHex(10n ** 18n));
  await mintUsdc(wallet.address, 10_000_000n);
});
afterAll(async () => {
  await sandbox[Symbol.asyncDispose]();
  await anvil[Symbol.asyncDispose]();
});

const add = (address: string) =>
  addEarnVault(
    { kind: 'folder', folder },
    { rpc: [{ caip2: 'eip155:8453', urls: [anvil.url] }] },
    { appId: sandbox.appId, chain: 'base', address, provider: 'morpho', adminWalletId: wallet.id, feeBps: 0 },
  );

test('an operator sets up a real vault, and deposits and withdrawals count what it does to the unit', async () => {
  await expect(add(usdc)).rejects.toMatchObject({ code: 'invalid_data' });
  const vault = await add(vaultAddress);
  expect(vault).toMatchObject({ name: 'USDC on base', asset_address: usdc, asset_decimals: 6 });
  await expect(add(vaultAddress)).rejects.toMatchObject({ code: 'resource_conflict' });

  const path = { wallet_id: wallet.id };
  const ended = async (id: string) => {
    for (let round = 0; round < 5; round += 1) {
      await anvil.ask('evm_mine');
      await waitSeconds(sandbox, 10);
    }
    const { body } = await call(sandbox, 'getWalletAction', { path: { ...path, action_id: id } });
    return body as unknown as Record<string, unknown>;
  };
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
