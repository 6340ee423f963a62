import { afterEach, beforeEach, expect, test } from 'vitest';
import { routersOnChain } from '../../../src/adapters/swap-routers.ts';
import type { Tables } from '../../../src/domain/tables.ts';
import { ceilingsOf } from '../../../src/engine/assets/fee-ceilings.ts';
import type { SwapActionResponse, Wallet } from '../../../src/generated/schemas.ts';
import type { Chains, EvmChain } from '../../../src/ports/chains.ts';
import {
  openSimulatedChains,
  type SimulatedChains,
} from '../../../src/sandbox/simulated/chains/simulated-chains.ts';
import { openOperations, type TestOperations } from '../../support/run-operations.ts';
import { automated } from './automated.ts';

// An automation never spends more than it brings: anyone can send dust, or a token whose approval burns gas.

const caip2 = 'eip155:8453';
const router = '0x7a250d5630B4cF539739dF2C5dAcb4c659F2488D';
const usdc = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const eurc = '0x60a3E35Cc302bFA44Cb288Bc5a4F316Fdb1adb42';
const unnamed = '0x00000000000000000000000000000000000C0fFE';
const ether = 10n ** 18n;

let operations: TestOperations;
let simulated: SimulatedChains;
let wallet: Wallet;
/** Gas units that each call of the wallet takes in a simulation. */
let burntGas: bigint;
let isSponsored: boolean;
let feeCeiling: bigint | undefined;

beforeEach(async () => {
  burntGas = 0n;
  isSponsored = true;
  feeCeiling = undefined;
  simulated = openSimulatedChains({
    ...{ file: ':memory:', clock: { now: () => operations.clock.nowMs }, confirmAfterMs: undefined },
    knownTokens: () => [
      { caip2, address: usdc, symbol: 'USDC', decimals: 6 },
      { caip2, address: eurc, symbol: 'EURC', decimals: 6 },
    ],
  });
  const chains: Chains = {
    find: (id) => burning(simulated.find(id) as EvmChain | undefined),
    listing: () => simulated.used(),
  };
  operations = await openOperations('sqlite', { chains });
  const { services } = operations;
  const swapRoutes = routersOnChain({ chains, clock: services.clock, routerOf: () => router });
  Object.assign(services, { swapRoutes });
  wallet = await run<Wallet>('createWallet', { body: { chain_type: 'ethereum' } });
  await give(null, ether);
  await detect();
});
afterEach(async () => {
  await operations[Symbol.asyncDispose]();
  await simulated.close();
});

/** The chain, on which calls take more gas. */
function burning(chain: EvmChain | undefined): EvmChain | undefined {
  if (chain === undefined) return undefined;
  const { bundler, ...rest } = chain;
  return {
    ...rest,
    ...(isSponsored && bundler !== undefined && { bundler }),
    ...(feeCeiling !== undefined && { ceilings: ceilingsOf(caip2, { fee: feeCeiling }) }),
    async simulate(calls) {
      const found = await chain.simulate(calls);
      if (!found.succeeds) return found;
      return { ...found, units: found.units.map((units) => units && units + burntGas) };
    },
  };
}

const { run, detect, runDue, settle, executionsOf, actionsOf } = automated(() => operations);

async function give(tokenAddress: string | null, rawAmount: bigint): Promise<void> {
  const decimals = tokenAddress === unnamed ? { decimals: 6 } : {};
  await simulated.fund(caip2, { address: wallet.address, tokenAddress, rawAmount, ...decimals });
}

async function automate(assets: object, to = 'native'): Promise<void> {
  const action = { type: 'swap', destination_chain_asset: { asset_address: to, caip2 } };
  const body = { owner_id: null, config: { trigger: { type: 'deposit', assets }, action } };
  const { id } = await run<{ id: string }>('createWalletAutomation', { body });
  const path = { wallet_id: wallet.id };
  await run('attachWalletAutomations', { path, body: { automation_ids: [id] } });
}

const including = (address: string) => ({
  mode: 'include',
  values: [{ asset_address: address, caip2 }],
});
const outcomes = async () =>
  (await executionsOf(wallet.id)).map(({ status, failure_reason: reason }) => ({ status, reason }));
const tooDear = expect.stringMatching(
  /^the gas costs up to \d+, more than 0\.5 of what the execution brings/,
);

test.each([
  ['the paymaster', true],
  ['the wallet', false],
])('dust is not swapped when %s pays the gas, and the user sees why', async (_name, sponsored) => {
  isSponsored = sponsored;
  await automate(including(eurc));
  await give(eurc, 1n);
  await settle();
  expect(await outcomes()).toEqual([{ status: 'skipped', reason: tooDear }]);
  expect(await actionsOf(wallet.id)).toEqual([]);
  // It is swept together with what is worth it.
  await give(eurc, 1_000_000_000n);
  await settle();
  expect(await outcomes()).toContainEqual({ status: 'completed', reason: null });
  expect(await actionsOf(wallet.id)).toMatchObject([{ status: 'succeeded', input_amount: '1000000001' }]);
});

test('dust is not swapped into another token either', async () => {
  await automate(including(eurc), usdc);
  await give(eurc, 100n);
  await settle();
  expect(await outcomes()).toEqual([{ status: 'skipped', reason: tooDear }]);
});

test('a token that burns gas is not swapped', async () => {
  await automate(including(eurc));
  burntGas = 15_000_000n;
  await give(eurc, 1_000_000n);
  await settle();
  expect(await outcomes()).toEqual([{ status: 'skipped', reason: tooDear }]);
});

test('the automations of a wallet spend no more on gas in a day than one transaction may', async () => {
  isSponsored = false;
  await automate(including(eurc));
  await give(eurc, 1_000_000_000n);
  await settle();
  const [swap] = await actionsOf<SwapActionResponse>(wallet.id);
  feeCeiling = (BigInt(swap!.estimated_gas!.base_amount) * 11n) / 10n;
  await give(eurc, 1_000_000_000n);
  await settle();
  const tooMuch = expect.stringMatching(/^the automations of the wallet have spent \d+ on gas within a day/);
  expect((await outcomes()).map(({ status }) => status)).toEqual(['completed', 'skipped']);
  expect((await outcomes())[1]).toEqual({ status: 'skipped', reason: tooMuch });
  operations.clock.nowMs += 25 * 60 * 60_000;
  await give(eurc, 1n);
  await settle();
  expect((await outcomes()).at(-1)).toEqual({ status: 'completed', reason: null });
});

test.each([
  ['the paymaster', true],
  ['the wallet', false],
])('nor several of them at once, when %s pays the gas', async (_name, sponsored) => {
  isSponsored = sponsored;
  await automate(including(eurc));
  await give(eurc, 1_000_000_000n);
  await settle();
  const [swap] = await actionsOf<SwapActionResponse>(wallet.id);
  const { gas_cost: planned } = await operations.database.orm.em
    .fork()
    .getKysely<Tables>()
    .selectFrom('wallet_automation_executions')
    .select('gas_cost')
    .where('action_id', '=', swap!.id)
    .executeTakeFirstOrThrow();
  operations.clock.nowMs += 25 * 60 * 60_000;
  feeCeiling = (BigInt(planned!) * 3n) / 2n;
  await automate({
    mode: 'include',
    values: [eurc, usdc].map((address) => ({ asset_address: address, caip2 })),
  });
  await give(eurc, 1_000_000_000n);
  await give(usdc, 1_000_000_000n);
  operations.clock.nowMs += 70_000;
  await detect();
  await runDue();
  const tooMuch = expect.stringMatching(/^the automations of the wallet have spent \d+ on gas within a day/);
  const sorted = (await outcomes()).slice(1).sort((one, other) => one.status.localeCompare(other.status));
  expect(sorted).toEqual([
    { status: 'skipped', reason: tooMuch },
    { status: 'submitted', reason: null },
  ]);
});

test.each([[{ mode: 'all' }], [{ mode: 'exclude', values: [{ asset_address: usdc, caip2 }] }]])(
  '%j covers named tokens only',
  async (assets) => {
    await automate(assets, usdc);
    await give(unnamed, 10n ** 12n);
    await settle();
    expect(await outcomes()).toEqual([]);
    await give(eurc, 1_000_000_000n);
    await settle();
    expect(await outcomes()).toMatchObject([{ status: 'completed' }]);
  },
);
