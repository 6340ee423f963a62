import { toHex } from 'viem';
import { expect, test } from 'vitest';
import type { SwapActionResponse, Wallet } from '../../../src/generated/schemas.ts';
import { startAnvil } from '../../support/anvil.ts';
import { call } from '../../support/call.ts';
import { fund } from '../../support/fund.ts';
import { deployUniswap, ROUTER_ON_ANVIL } from '../../support/nodes/uniswap.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';
import { waitSeconds } from '../../support/wait-seconds.ts';

// One scenario on the published contracts of Uniswap V2 and on the simulated chain must agree to the unit.
const base = 'eip155:8453';
const usdc = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const eurc = '0x60a3E35Cc302bFA44Cb288Bc5a4F316Fdb1adb42';
const receiver = '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0';
const ether = 10n ** 18n;

interface World extends AsyncDisposable {
  readonly sandbox: TestSandbox;
  /** 10 ETH and 50,000 USDC. */
  fund(address: string): Promise<void>;
  settle(): Promise<void>;
}

const worlds: Record<'simulated' | 'real', () => Promise<World>> = {
  async simulated() {
    const sandbox = await startSandbox();
    return {
      sandbox,
      async fund(address) {
        await fund(sandbox, address, { chain: 'base', asset: 'eth', rawAmount: 10n * ether });
        await fund(sandbox, address, { chain: 'base', asset: 'usdc', rawAmount: 50_000_000_000n });
      },
      settle: () => waitSeconds(sandbox, 10),
      [Symbol.asyncDispose]: () => sandbox[Symbol.asyncDispose](),
    };
  },
  async real() {
    const anvil = await startAnvil(8453);
    const uniswap = await deployUniswap(anvil);
    await uniswap.installToken(usdc);
    await uniswap.installToken(eurc);
    // As the simulated pools begin: $1,000,000 a side at 1, 1.1 and 3000 dollars.
    const [dollars, euros, ethers] = [10n ** 12n, 909_090_909_090n, 333_333_333_333_333_333_333n];
    await uniswap.makePool([usdc, dollars], ['native', ethers]);
    await uniswap.makePool([eurc, euros], ['native', ethers]);
    await uniswap.makePool([usdc, dollars], [eurc, euros]);
    const sandbox = await startSandbox({
      rpc: [{ caip2: base, urls: [anvil.url] }],
      swapRouters: new Map([[base, { router: ROUTER_ON_ANVIL }]]),
    });
    return {
      sandbox,
      async fund(address) {
        await anvil.ask('anvil_setBalance', address, toHex(10n * ether));
        await uniswap.giveToken(usdc, address, 50_000_000_000n);
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

const orders = [
  { from: usdc, to: 'native', amount: '1234567891' },
  { from: 'native', to: eurc, amount: '777777777', type: 'exact_output', slippage: 300 },
  { from: usdc, to: eurc, amount: '999000001', type: 'exact_output', slippage: 100, destination: receiver },
  { from: usdc, to: 'native', amount: '20000000000' },
  { from: eurc, to: 'native', amount: '31415926535897932', type: 'exact_output' },
  { from: 'native', to: usdc, amount: '271828182845904523', destination: receiver },
  { from: usdc, to: 'native', amount: '5000000', destination: receiver },
] as const;

async function play(world: World): Promise<object[]> {
  const { sandbox } = world;
  const { body: wallet } = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
  await world.fund(wallet.address);
  const path = { wallet_id: wallet.id };
  const played: object[] = [];
  for (const order of orders) {
    const { from, to, amount } = order;
    const body = {
      source: { asset_address: from, caip2: base },
      destination: {
        asset_address: to,
        ...('destination' in order ? { destination_address: order.destination } : {}),
      },
      base_amount: amount,
      amount_type: 'type' in order ? order.type : 'exact_input',
      ...('slippage' in order ? { slippage_bps: order.slippage } : {}),
    } as const;
    const { body: quoted } = await call(sandbox, 'quoteWalletSwap', { path, body });
    const { body: begun } = await call(sandbox, 'executeWalletSwap', { path, body });
    const endOf = async () => {
      const of = { ...path, action_id: begun.id };
      return (await call(sandbox, 'getWalletAction', { path: of, query: { include: 'steps' } })).body;
    };
    let ended = await endOf();
    for (let round = 0; round < 4 && ended.status === 'pending'; round += 1) {
      await world.settle();
      ended = await endOf();
    }
    const { status, input_amount, output_amount, steps } = ended as SwapActionResponse;
    const { input_amount: asked, est_output_amount, minimum_output_amount } = quoted;
    played.push({
      ...{ status, input_amount, output_amount, steps: steps?.length },
      quoted: { asked, est_output_amount, minimum_output_amount },
    });
  }
  return [...played, await holdings(sandbox, wallet)];
}

/** Without the native asset of the wallet, which has paid different gas. */
async function holdings(sandbox: TestSandbox, { address }: Wallet): Promise<object> {
  const chain = sandbox.services.chains.find(base)!;
  return {
    wallet: await chain.balances(address, [usdc, eurc]),
    receiver: await chain.balances(receiver, [null, usdc, eurc]),
  };
}

test('swaps by the published contracts and by the simulated ones agree to the unit', async () => {
  await using simulated = await worlds.simulated();
  await using real = await worlds.real();
  const onReal = await play(real);
  expect(onReal.slice(0, -1).map((played) => (played as { status: string }).status)).toEqual(
    orders.map(() => 'succeeded'),
  );
  expect(await play(simulated)).toEqual(onReal);
});
