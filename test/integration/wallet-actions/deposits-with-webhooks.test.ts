import { readFileSync } from 'node:fs';
import { type Abi, encodeDeployData, encodeFunctionData, type Hex, parseAbi, toHex } from 'viem';
import { expect, test } from 'vitest';
import { addEarnVault } from '../../../src/admin/earn-vaults.ts';
import type { Wallet } from '../../../src/generated/schemas.ts';
import { startAnvil } from '../../support/anvil.ts';
import { call } from '../../support/call.ts';
import { fund } from '../../support/fund.ts';
import { deployUniswap, ROUTER_ON_ANVIL } from '../../support/nodes/uniswap.ts';
import { control } from '../../support/other-app.ts';
import { temporaryFolder } from '../../support/run-custos.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import { waitSeconds } from '../../support/wait-seconds.ts';
import { type Received, startWebhookReceiver } from '../../support/webhook-receiver.ts';

// What customers see of a deposit that moves on by itself: webhooks, and no request of theirs in between.
const isLong = process.env.TEST_LONG === '1';
const base = 'eip155:8453';
const usdc: Hex = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const eurc: Hex = '0x60a3E35Cc302bFA44Cb288Bc5a4F316Fdb1adb42';
const payer: Hex = '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266';
const deposited = 50_000_000n;

interface World extends AsyncDisposable {
  readonly sandbox: TestSandbox;
  /** Of USDC. */
  readonly vaultId: string;
  /** Gas, where no paymaster pays it. */
  giveGas(address: string): Promise<void>;
  deposit(address: string): Promise<void>;
  settle(): Promise<void>;
}

const worlds: Record<'a simulated chain' | 'anvil', () => Promise<World>> = {
  async 'a simulated chain'() {
    const sandbox = await startSandbox();
    const { id } = await control<{ id: string }>(sandbox, 'POST', `apps/${sandbox.appId}/earn_vaults`, {
      ...{ chain: 'base', asset: 'usdc', provider: 'tempo' },
    });
    return {
      ...{ sandbox, vaultId: id, giveGas: async () => undefined },
      deposit: (address) => fund(sandbox, address, { chain: 'base', asset: 'eurc', rawAmount: deposited }),
      settle: () => waitSeconds(sandbox, 10),
      [Symbol.asyncDispose]: () => sandbox[Symbol.asyncDispose](),
    };
  },
  async anvil() {
    const anvil = await startAnvil(8453);
    const uniswap = await deployUniswap(anvil);
    for (const token of [usdc, eurc]) await uniswap.installToken(token);
    await uniswap.makePool([usdc, 10n ** 12n], [eurc, 909_090_909_090n]);
    const send = async (transaction: object): Promise<{ contractAddress: Hex }> => {
      const call = { from: payer, gas: toHex(5_000_000n), ...transaction };
      const hash = await anvil.ask('eth_sendTransaction', call);
      await anvil.ask('evm_mine');
      return (await anvil.ask('eth_getTransactionReceipt', hash)) as { contractAddress: Hex };
    };
    const file = new URL('../../vectors/contracts/golden/vault.json', import.meta.url);
    const { Vault } = JSON.parse(readFileSync(file, 'utf8')) as Record<'Vault', { abi: Abi; bytecode: Hex }>;
    const { contractAddress: address } = await send({
      data: encodeDeployData({ ...Vault, args: [usdc, 0] } as never),
    });
    const folder = temporaryFolder();
    const rpc = [{ caip2: base, urls: [anvil.url] }];
    const sandbox = await startSandbox({
      ...{ dataFolder: folder, rpc, swapRouters: new Map([[base, { router: ROUTER_ON_ANVIL }]]) },
    });
    const vault = await addEarnVault(
      { kind: 'folder', folder },
      { rpc },
      {
        ...{ appId: sandbox.appId, chain: 'base', address, provider: 'tempo' },
        ...{ adminWalletId: undefined, feeBps: 0 },
      },
    );
    return {
      ...{ sandbox, vaultId: vault.id },
      async giveGas(to) {
        await anvil.ask('anvil_setBalance', to, toHex(10n ** 18n));
      },
      async deposit(to) {
        await uniswap.giveToken(eurc, payer, deposited);
        const abi = parseAbi(['function transfer(address to, uint256 amount) returns (bool)']);
        const args = [to as Hex, deposited] as const;
        await send({ to: eurc, data: encodeFunctionData({ abi, functionName: 'transfer', args }) });
      },
      async settle() {
        await anvil.ask('evm_mine');
        await waitSeconds(sandbox, 10);
      },
      async [Symbol.asyncDispose]() {
        await sandbox[Symbol.asyncDispose]();
        await anvil[Symbol.asyncDispose]();
      },
    };
  },
};

async function automate(sandbox: TestSandbox, wallet: Wallet, assets: object[], rest: object): Promise<void> {
  const { action, params } = rest as { action: never; params?: object };
  const trigger = { type: 'deposit', assets: { mode: 'include', values: assets } };
  const { body } = await call(sandbox, 'createWalletAutomation', {
    body: { owner_id: null, config: { trigger: trigger as never, action } },
  });
  await call(sandbox, 'attachWalletAutomations', {
    path: { wallet_id: wallet.id },
    body: { automation_ids: [body.id], ...(params === undefined ? {} : { params: params as never }) },
  });
}

/**
 * What the webhooks say about the deposits and actions of a wallet, each type once: they are in order per resource only,
 * and a real chain shows the shares of a vault as a deposit too.
 */
const typesOf = (received: readonly Received[], walletId: string) => {
  const types = received.filter(({ body }) => body.wallet_id === walletId).map(({ body }) => body.type);
  return [...new Set(types.filter((type) => /^wallet(_|\.funds_deposited)/.test(type)))].sort();
};

test.runIf(isLong).each(Object.keys(worlds) as (keyof typeof worlds)[])(
  'a deposit on %s is swapped and put into a vault without a request',
  async (name) => {
    await using receiver = await startWebhookReceiver();
    await using world = await worlds[name]();
    const { sandbox, vaultId } = world;
    await call(sandbox, 'createWebhookEndpoint', { body: { url: receiver.url } });
    const wallets: Wallet[] = [];
    for (let count = 0; count < 2; count += 1) {
      wallets.push((await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } })).body);
      await world.giveGas(wallets[count]!.address);
    }
    const [till, savings] = wallets as [Wallet, Wallet];
    await automate(sandbox, till, [{ asset: 'eurc', chain: 'base' }], {
      action: { type: 'swap', destination_chain_asset: { asset: 'usdc', chain: 'base' } },
      params: { destination_address: savings.address },
    });
    await automate(sandbox, savings, [{ asset: 'usdc', chain: 'base' }], {
      action: { type: 'earn_deposit', vault_id: vaultId },
    });
    await world.settle();
    await world.deposit(till.address);
    const isDone = () =>
      receiver.received.some(({ body }) => body.type === 'wallet_action.earn_deposit.succeeded');
    for (let round = 0; round < 30 && !isDone(); round += 1) {
      await world.settle();
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    expect(typesOf(receiver.received, till.id)).toEqual([
      'wallet.funds_deposited',
      'wallet_action.swap.created',
      'wallet_action.swap.succeeded',
      'wallet_automation.submitted',
    ]);
    expect(typesOf(receiver.received, savings.id)).toEqual([
      'wallet.funds_deposited',
      'wallet_action.earn_deposit.created',
      'wallet_action.earn_deposit.succeeded',
      'wallet_automation.submitted',
    ]);
    const swapped = receiver.received.find(({ body }) => body.type === 'wallet_action.swap.succeeded')!;
    const earning = receiver.received.find(
      ({ body }) => body.type === 'wallet_action.earn_deposit.succeeded',
    )!;
    expect(swapped.body.input_amount).toBe(String(deposited));
    expect(earning.body.raw_amount).toBe(swapped.body.output_amount);
    const { body: position } = await call(sandbox, 'getEthereumEarnPosition', {
      path: { wallet_id: savings.id },
      query: { vault_id: vaultId },
    });
    expect(position).toMatchObject({ total_deposited: swapped.body.output_amount });
    process.stdout.write(
      `${name}: ${deposited} EURC -> ${swapped.body.output_amount} USDC -> ${earning.body.share_amount} shares\n`,
    );
  },
  120_000,
);

test.runIf(isLong)('ether on one chain becomes USDC on another', async () => {
  await using receiver = await startWebhookReceiver();
  await using sandbox = await startSandbox();
  await call(sandbox, 'createWebhookEndpoint', { body: { url: receiver.url } });
  const { body: wallet } = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
  const path = { wallet_id: wallet.id };
  const { body } = await call(sandbox, 'createCryptoDepositAccount', {
    path,
    body: { type: 'deposit_config', deposit_config_id: 'j3h2jsj9vzcghv28s3w1prka' },
  });
  const [account] = body.deposit_accounts;
  const quoted = await call(sandbox, 'quoteCryptoDeposit', {
    body: {
      ...{ source: { asset: 'eth', chain: 'optimism' }, destination: { asset: 'usdc', chain: 'base' } },
      input_amount: '0.5',
    },
  });
  sandbox.clock.advance(1);
  const rawAmount = 5n * 10n ** 17n;
  await fund(sandbox, account!.deposit_address, { chain: 'optimism', asset: 'eth', rawAmount });
  const nextOrder = async () =>
    (await call(sandbox, 'getNextCryptoDepositOrder', { path, query: { after: quoted.body.created_at } }))
      .body.order;
  const seen: string[] = [];
  for (let round = 0; round < 30 && seen.at(-1) !== 'succeeded'; round += 1) {
    await waitSeconds(sandbox, 10);
    const order = await nextOrder();
    if (order !== null && order.status !== seen.at(-1)) seen.push(order.status);
  }
  expect(seen.at(-1)).toBe('succeeded');
  await waitSeconds(sandbox, 10);
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect(typesOf(receiver.received, account!.wallet_id)).toEqual([
    'wallet.funds_deposited',
    'wallet_action.swap.created',
    'wallet_action.swap.succeeded',
    'wallet_automation.submitted',
  ]);
  const swapped = receiver.received.find(({ body: event }) => event.type === 'wallet_action.swap.succeeded')!;
  const arrived = Number(swapped.body.output_amount) / 10 ** 6;
  expect(String(arrived)).toBe(quoted.body.estimated_output_amount);
  expect(typesOf(receiver.received, wallet.id)).toEqual(['wallet.funds_deposited']);
  process.stdout.write(`0.5 ETH on Optimism -> ${arrived} USDC on Base; order ${seen.join(', ')}\n`);
});
