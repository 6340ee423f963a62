import { toHex } from 'viem';
import { addEarnVault } from '../../src/admin/earn-vaults.ts';
import type { EthereumEarnPositionResponse, Wallet } from '../../src/generated/schemas.ts';
import { type Anvil, startAnvil } from '../../test/support/anvil.ts';
import { earnContractsOn } from '../../test/support/nodes/earn-contracts.ts';
import { answerAbout, type GivenReward, startMerkl, treeOf } from '../../test/support/nodes/merkl-service.ts';
import { deployUniswap, ROUTER_ON_ANVIL } from '../../test/support/nodes/uniswap.ts';
import { type ServingCustos, serveCustos, temporaryFolder, waitFor } from '../../test/support/run-custos.ts';
import { startWebhookReceiver, verifyWebhook } from '../../test/support/webhook-receiver.ts';

// `node bench/by-hand/onchain-actions.ts [simulated|anvil]`: quote, swap, deposit, a year on the clock, fees,
// withdrawal and claim over HTTPS, with every webhook verified, on simulated chains or with `--rpc` against the
// published Uniswap contracts, OpenZeppelin's vault and a distributor of rewards on anvil. On anvil a gift to the vault
// stands for the interest of the year.

const caip2 = 'eip155:8453';
const usdc = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const YEAR_SECONDS = 31_536_000;
const ether = 10n ** 18n;

/** What differs between simulated chains and a node. */
interface World {
  readonly custos: ServingCustos;
  readonly rewardToken: string;
  fund(address: string): Promise<void>;
  /** The id of a vault that keeps fees for its admin. */
  setUpVault(admin: Wallet): Promise<string>;
  passAYear(): Promise<void>;
  reward(address: string): Promise<void>;
  /** Lets transactions become final. */
  mine(): Promise<void>;
  close(): Promise<void>;
}

function advance(custos: ServingCustos, seconds: number): Promise<unknown> {
  return must(custos, 'PUT', '/_sandbox/clock', { advance_ms: seconds * 1000 });
}

async function must<Body = Record<string, never>>(
  custos: ServingCustos,
  method: string,
  path: string,
  body?: object,
): Promise<Body> {
  const answer = await custos.call<Body>(method, path, body);
  if (answer.status !== 200) throw new Error(`${method} ${path} answered ${answer.status} ${answer.text}`);
  return answer.body;
}

async function simulatedWorld(): Promise<World> {
  const custos = await serveCustos(['sandbox', '--quiet']);
  const rewardToken = '0x6f470988d35CD75390B4CA8Aee1a922f1BDbE9E7';
  return {
    custos,
    rewardToken,
    async fund(address) {
      await must(custos, 'POST', '/_sandbox/faucet', { chain: 'base', address, amount: '1' });
      const tokens = { chain: 'base', address, asset: 'usdc', amount: '1000' };
      await must(custos, 'POST', '/_sandbox/faucet', tokens);
    },
    async setUpVault(admin) {
      const body = { chain: 'base', asset: 'usdc', provider: 'aave', apy_bps: 500, fee_bps: 1000 };
      const path = `/_sandbox/apps/${custos.ready.app_id}/earn_vaults`;
      return (await must<{ id: string }>(custos, 'POST', path, { ...body, admin_wallet_id: admin.id })).id;
    },
    passAYear: async () => void (await advance(custos, YEAR_SECONDS)),
    async reward(address) {
      const body = { chain: 'base', address, token_address: rewardToken, raw_amount: String(ether) };
      await must(custos, 'POST', '/_sandbox/earn/rewards', body);
    },
    mine: async () => void (await advance(custos, 10)),
    close: async () => void (await custos.stop()),
  };
}

async function anvilWorld(): Promise<World> {
  const anvil: Anvil = await startAnvil(8453);
  const uniswap = await deployUniswap(anvil);
  await uniswap.installToken(usdc);
  await uniswap.makePool([usdc, 10n ** 12n], ['native', 300n * ether]);
  const contracts = earnContractsOn(anvil);
  const distributor = await contracts.deploy('Distributor');
  const rewardToken = await contracts.deploy('Token', 18);
  let given: readonly GivenReward[] = [];
  const merkl = await startMerkl((path) => ({
    text: JSON.stringify(answerAbout(path.split('/')[3] ?? '', 8453, given)),
  }));
  const folder = temporaryFolder();
  const custos = await serveCustos([
    ...['sandbox', '--quiet', '--data', folder, '--rpc', `${caip2}=${anvil.url}`],
    ...['--swap-router', `${caip2}=${ROUTER_ON_ANVIL}`],
    ...['--reward-distributor', `${caip2}=${distributor}`, '--merkl-url', merkl.url],
  ]);
  let vault: `0x${string}` = '0x';
  return {
    custos,
    rewardToken,
    async fund(address) {
      await anvil.ask('anvil_setBalance', address, toHex(ether));
      await uniswap.giveToken(usdc, address, 1_000_000_000n);
    },
    async setUpVault(admin) {
      vault = await contracts.deploy('FeeVault', usdc, admin.address);
      const added = await addEarnVault(
        { kind: 'folder', folder },
        { rpc: [{ caip2, urls: [anvil.url] }] },
        {
          ...{ appId: custos.ready.app_id, chain: 'base', address: vault, provider: 'aave' },
          ...{ adminWalletId: admin.id, feeBps: 1000 },
        },
      );
      return added.id;
    },
    async passAYear() {
      await anvil.ask('evm_increaseTime', YEAR_SECONDS);
      const held = await contracts.read(usdc, 'Token', 'balanceOf', vault);
      await uniswap.giveToken(usdc, vault, held + held / 20n);
      await contracts.call(vault, 'FeeVault', 'keepFees', held / 200n);
      await advance(custos, YEAR_SECONDS);
    },
    async reward(address) {
      given = [{ user: address, token: rewardToken, amount: ether }];
      await contracts.call(rewardToken as `0x${string}`, 'Token', 'mint', distributor, ether);
      await contracts.call(distributor, 'Distributor', 'setRoot', treeOf(given).root);
    },
    async mine() {
      await anvil.ask('evm_mine');
      await advance(custos, 90);
    },
    async close() {
      await custos.stop();
      await merkl[Symbol.asyncDispose]();
      await anvil[Symbol.asyncDispose]();
    },
  };
}

interface Action {
  readonly id: string;
  readonly type: string;
  readonly status: string;
}

async function main(name: string): Promise<void> {
  const world = await (name === 'anvil' ? anvilWorld() : simulatedWorld());
  await using receiver = await startWebhookReceiver();
  const { custos } = world;
  const endpoint = await must<{ secret: string }>(custos, 'POST', '/v1/webhooks', { url: receiver.url });
  const wallet = await must<Wallet>(custos, 'POST', '/v1/wallets', { chain_type: 'ethereum' });
  const path = `/v1/wallets/${wallet.id}`;
  print(`wallet ${wallet.address} on ${custos.ready.base_url}, chains: ${name}`);
  await world.fund(wallet.address);
  const vault_id = await world.setUpVault(wallet);

  async function run(title: string, operation: string, body: object): Promise<void> {
    const { id } = await must<Action>(custos, 'POST', `${path}/${operation}`, body);
    for (let round = 0; round < 50; round += 1) {
      await world.mine();
      const action = await must<Action>(custos, 'GET', `${path}/actions/${id}`);
      if (action.status !== 'pending') return print(`${title}: ${action.status} ${amountsOf(action)}`);
    }
    throw new Error(`${title} does not end`);
  }
  const position = () =>
    must<EthereumEarnPositionResponse>(custos, 'GET', `${path}/earn/ethereum/vaults?vault_id=${vault_id}`);

  const order = {
    source: { asset_address: usdc, caip2 },
    ...{ destination: { asset_address: 'native' }, base_amount: '300000000' },
  };
  const quote = await must(custos, 'POST', `${path}/swap/quote`, order);
  print(`quote: ${JSON.stringify(quote)}`);
  await run('swap', 'swap', order);
  await run('deposit', 'earn/ethereum/deposit', { vault_id, amount: '500' });
  await world.passAYear();
  const { assets_in_vault: all } = await position();
  print(`after a year the position is worth ${all}`);
  await run('fees', 'earn/ethereum/fees/collect', { vault_id });
  await run('withdrawal', 'earn/ethereum/withdraw', { vault_id, raw_amount: all });
  await world.reward(wallet.address);
  await run('claim', 'earn/ethereum/incentive/claim', { chain: 'base' });
  print(`position: ${JSON.stringify(await position())}`);

  const isTold = () =>
    receiver.received.some(({ body }) => body.type === 'wallet_action.earn_incentive_claim.succeeded');
  await waitFor(isTold);
  const types = new Map<string, number>();
  for (const received of receiver.received) {
    verifyWebhook(received, endpoint.secret);
    types.set(received.body.type, (types.get(received.body.type) ?? 0) + 1);
  }
  for (const [type, count] of [...types].sort()) print(`webhook verified: ${count} × ${type}`);
  if (name !== 'anvil') await printBooks(custos);
  await world.close();
}

async function printBooks(custos: ServingCustos): Promise<void> {
  interface AssetBook {
    readonly token_address: string | null;
    readonly given: string;
    readonly minted: string;
    readonly held: Readonly<Record<string, string>>;
  }
  const { data } = await must<{ data: readonly AssetBook[] }>(custos, 'GET', '/_sandbox/books');
  for (const { token_address: token, given, minted, held } of data) {
    const sum = Object.values(held).reduce((total, amount) => total + BigInt(amount), 0n);
    const isWhole = sum === BigInt(given) + BigInt(minted);
    const name = token ?? 'native';
    print(
      `books of ${name}: given ${given}, minted ${minted}, held ${JSON.stringify(held)} ${isWhole ? '=' : '≠'}`,
    );
    if (!isWhole) process.exitCode = 1;
  }
}

function amountsOf(action: object): string {
  const kept = ['input_amount', 'output_amount', 'raw_amount', 'share_amount', 'rewards'];
  return JSON.stringify(Object.fromEntries(Object.entries(action).filter(([name]) => kept.includes(name))));
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

await main(process.argv[2] ?? 'simulated');
