import type { SqlEntityManager } from '@mikro-orm/sql';
import fc from 'fast-check';
import { decodeAbiParameters } from 'viem';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { routersOnChain } from '../../../src/adapters/swap-routers.ts';
import { planCalls } from '../../../src/domain/money/sending/plan-calls.ts';
import { offerSwap, routeApprovals } from '../../../src/domain/money/swaps/plan-swap.ts';
import { readSwap } from '../../../src/domain/money/swaps/swap.ts';
import { beginWalletAction, sendSteps } from '../../../src/domain/money/wallet-actions/wallet-action.ts';
import type { Tables } from '../../../src/domain/tables.ts';
import { findWallet } from '../../../src/domain/wallets/wallets/find-wallet.ts';
import type { SwapActionResponse, Wallet } from '../../../src/generated/schemas.ts';
import type { Chains, EvmChain } from '../../../src/ports/chains.ts';
import {
  openSimulatedChains,
  type SimulatedChains,
} from '../../../src/sandbox/simulated/chains/simulated-chains.ts';
import { databaseKinds } from '../../support/databases.ts';
import { type Loss, withLoss } from '../../support/nodes/lossy-chain.ts';
import { openOperations, type TestOperations } from '../../support/run-operations.ts';
import { withoutOwner } from '../../support/unsigned-proof.ts';
import { runJobs } from '../wallet-actions/run-jobs.ts';

const caip2 = 'eip155:8453';
const router = '0x7a250d5630B4cF539739dF2C5dAcb4c659F2488D';
const factory = '0x5C69bEe701ef814a2B6a3EDD4B1652CB9cc5aA6f';
const usdc = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const eurc = '0x60a3E35Cc302bFA44Cb288Bc5a4F316Fdb1adb42';
const weth = '0x4200000000000000000000000000000000000006';
const assets = ['native', weth, usdc, eurc] as const;
type Asset = (typeof assets)[number];
const ether = 10n ** 18n;
const isLong = process.env.TEST_LONG === '1';

describe.each(databaseKinds)('swaps on %s', (kind) => {
  let operations: TestOperations;
  let chains: SimulatedChains;
  let loss: Loss;
  const clock = { nowMs: 0 };
  const evm = (): EvmChain => chains.find(caip2) as EvmChain;

  beforeEach(async () => {
    loss = 'nothing';
    chains = openSimulatedChains({
      ...{ file: ':memory:', clock: { now: () => clock.nowMs }, confirmAfterMs: undefined },
      knownTokens: () => [
        { caip2, address: usdc, symbol: 'USDC', decimals: 6 },
        { caip2, address: eurc, symbol: 'EURC', decimals: 6 },
      ],
    });
    const lossy: Chains = { find: (id) => withLoss(chains.find(id), () => loss) };
    operations = await openOperations(kind, { chains: lossy });
    clock.nowMs = operations.clock.nowMs;
    connect(operations, lossy);
  });
  afterEach(async () => {
    await operations[Symbol.asyncDispose]();
    await chains.close();
  });

  function connect(served: TestOperations, lossy: Chains): void {
    const { services } = served;
    const swapRoutes = routersOnChain({ chains: lossy, clock: services.clock, routerOf: () => router });
    Object.assign(services, { chains: lossy, swapRoutes });
  }

  async function wait(seconds: number, served = [operations]): Promise<void> {
    clock.nowMs += seconds * 1000;
    for (const each of served) each.clock.nowMs = clock.nowMs;
    await Promise.all(served.map(runJobs));
  }

  async function makeWallet(): Promise<Wallet> {
    const { body } = await operations.run('createWallet', { body: { chain_type: 'ethereum' } });
    const wallet = body as Wallet;
    const give = (tokenAddress: string | null, rawAmount: bigint) =>
      chains.fund(caip2, { address: wallet.address, tokenAddress, rawAmount });
    await give(null, 100n * ether);
    await give(usdc, 100_000_000_000n);
    await give(eurc, 100_000_000_000n);
    return wallet;
  }

  const swap = (wallet: Wallet, order: Order, served = operations) =>
    served.run('executeWalletSwap', {
      path: { wallet_id: wallet.id },
      body: {
        source: { asset_address: order.from, caip2 },
        destination: { asset_address: order.to },
        base_amount: String(order.amount),
        amount_type: order.type,
        slippage_bps: order.slippage,
      },
    });

  async function actionsOf(wallet: Wallet): Promise<SwapActionResponse[]> {
    const { body } = await operations.run('listWalletActions', { path: { wallet_id: wallet.id } });
    return (body as { data: SwapActionResponse[] }).data;
  }

  async function holdings(wallet: Wallet): Promise<Record<Asset, bigint>> {
    const held = await evm().balances(wallet.address, [null, weth, usdc, eurc]);
    return Object.fromEntries(assets.map((asset, index) => [asset, held[index]])) as never;
  }

  /** x·y of each pool; asking for a pool creates it. */
  async function products(): Promise<bigint[]> {
    const pairs = [
      [usdc, eurc],
      [usdc, weth],
      [eurc, weth],
    ];
    return Promise.all(
      pairs.map(async ([one, other]) => {
        const words = [one, other].map((token) => token!.slice(2).toLowerCase().padStart(64, '0'));
        const pair = await evm().read({ to: factory, data: hex(`e6a43905${words.join('')}`) });
        const to = `0x${Buffer.from(pair).toString('hex').slice(24)}`;
        const reserves = await evm().read({ to, data: hex('0902f1ac') });
        const [x, y] = decodeAbiParameters(
          [{ type: 'uint112' }, { type: 'uint112' }, { type: 'uint32' }],
          `0x${Buffer.from(reserves).toString('hex')}`,
        );
        return x * y;
      }),
    );
  }

  async function eventTypes(id: string): Promise<string[]> {
    const fork = operations.database.orm.em.fork() as SqlEntityManager;
    const rows = await fork
      .getKysely<Tables>()
      .selectFrom('outbox_events')
      .select('type')
      .where('resource_id', '=', id)
      .orderBy('sequence')
      .execute();
    return rows.map(({ type }) => type);
  }

  interface Order {
    readonly from: Asset;
    readonly to: Asset;
    readonly amount: bigint;
    readonly type: 'exact_input' | 'exact_output';
    readonly slippage: number;
  }

  const order: fc.Arbitrary<Order> = fc
    .record({
      from: fc.constantFrom(...assets),
      to: fc.constantFrom(...assets),
      amount: fc.bigInt({ min: 1n, max: 20_000_000_000n }),
      type: fc.constantFrom('exact_input' as const, 'exact_output' as const),
      slippage: fc.constantFrom(0, 10, 50, 2000),
    })
    .map(({ amount, ...rest }) => {
      const fixed = rest.type === 'exact_input' ? rest.from : rest.to;
      return { ...rest, amount: fixed === usdc || fixed === eurc ? amount : amount * 300_000_000n };
    });
  const step = fc.record({
    wallet: fc.integer({ min: 0, max: 1 }),
    order,
    loss: fc.constantFrom<Loss>('nothing', 'nothing', 'request', 'answer'),
    seconds: fc.constantFrom(0, 0, 2, 20),
  });

  test('random swaps with lost connections: every unit is accounted for, and each action ends once', async () => {
    let succeeded = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 6, maxLength: isLong ? 30 : 8 }), async (steps) => {
        const wallets = [await makeWallet(), await makeWallet()];
        let before = await products();
        const start = await Promise.all(wallets.map(holdings));
        for (const { wallet, order, loss: next, seconds } of steps) {
          loss = next;
          const { status, body } = await swap(wallets[wallet]!, order);
          loss = 'nothing';
          if (status !== 200) expect([400, status]).toContain(400);
          if (status !== 200) expect((body as { code: string }).code).not.toBe('internal_error');
          await wait(seconds);
          const after = await products();
          expect(after.every((product, index) => product >= before[index]!)).toBe(true);
          before = after;
        }
        for (let round = 0; round < 12; round += 1) await wait(70);
        for (const { given, minted, held } of await chains.books()) {
          expect(Object.values(held).reduce((sum, amount) => sum + amount, 0n)).toBe(given + minted);
        }
        for (const [index, wallet] of wallets.entries()) {
          const expected = { ...start[index]! };
          for (const action of await actionsOf(wallet)) {
            expect(action.status).not.toBe('pending');
            if (action.status === 'succeeded') succeeded += 1;
            expect(await eventTypes(action.id)).toEqual([
              'wallet_action.swap.created',
              `wallet_action.swap.${action.status}`,
            ]);
            const [input, output] = [action.input_token as Asset, action.output_token as Asset];
            expected[input] -= BigInt(action.input_amount ?? 0);
            expected[output] += BigInt(action.output_amount ?? 0);
            expected.native -= BigInt(action.gas?.base_amount ?? 0);
          }
          expect(await holdings(wallet)).toEqual(expected);
        }
      }),
      { numRuns: isLong ? 30 : 3 },
    );
    expect(succeeded).toBeGreaterThan(3);
  });

  test('a sponsored swap is one user operation, and costs the wallet no gas', async () => {
    const wallet = await makeWallet();
    const before = await holdings(wallet);
    const body = {
      source: { asset_address: usdc, caip2 },
      destination: { asset_address: eurc },
      base_amount: '1000000',
    };
    const context = operations.context(operations.database.orm.em.fork() as SqlEntityManager);
    const found = await findWallet(context, wallet.id);
    const offer = await offerSwap(context, found, readSwap(found, body));
    if (offer.by !== 'route') throw new Error('expected a route');
    const { route } = offer;
    const approvals = await routeApprovals(context, found, offer);
    const { builds } = await planCalls(context, {
      ...{ caip2, address: wallet.address, method: 'swap', isSponsored: true },
      calls: [...approvals, ...route.calls],
    });
    const unit = await operations.database.orm.em.fork().transactional(async (em) => {
      const inUnit = operations.context(em as SqlEntityManager);
      const steps = await sendSteps(inUnit, found, {
        ...{ type: 'swap', builds, readsEffects: true },
        authorization: withoutOwner,
      });
      const { spent, received } = route;
      await beginWalletAction(inUnit, wallet.id, {
        ...{ type: 'swap', nonce: undefined, referenceId: undefined, steps, terms: { spent, received } },
        details: { caip2, input_token: usdc, output_token: eurc },
      });
      return inUnit;
    });
    await (unit as typeof unit & { finish(): Promise<void> }).finish();
    for (let round = 0; round < 3; round += 1) await wait(10);
    const [{ id }] = (await actionsOf(wallet)) as [SwapActionResponse];
    const { body: action } = await operations.run('getWalletAction', {
      path: { wallet_id: wallet.id, action_id: id },
      query: { include: 'steps' },
    });
    const output = String(route.rawOutput);
    const hash = expect.stringMatching(/^0x[0-9a-f]{64}$/);
    expect(action).toMatchObject({
      ...{ status: 'succeeded', input_amount: '1000000', output_amount: output, gas: null },
      steps: [
        {
          ...{ type: 'evm_user_operation', status: 'confirmed', entrypoint_version: '0.8' },
          ...{ user_operation_hash: hash, bundle_transaction_hash: hash },
        },
      ],
    });
    expect(await holdings(wallet)).toEqual({
      ...before,
      [usdc]: before[usdc] - 1_000_000n,
      [eurc]: before[eurc] + route.rawOutput,
    });
  });

  test('two processes that run the jobs end a swap once', async () => {
    const wallet = await makeWallet();
    const other = kind === 'postgres' ? await operations.anotherProcess() : operations;
    if (other !== operations) connect(other, operations.services.chains);
    const sold = { from: usdc, to: 'native', amount: 1_000_000n, type: 'exact_input', slippage: 50 } as const;
    const begun = await Promise.all([swap(wallet, sold), swap(wallet, { ...sold, from: eurc }, other)]);
    expect(begun.map(({ status }) => status)).toEqual([200, 200]);
    for (let round = 0; round < 4; round += 1) await wait(70, [...new Set([operations, other])]);
    for (const { id, status } of await actionsOf(wallet)) {
      expect(status).toBe('succeeded');
      expect(await eventTypes(id)).toEqual(['wallet_action.swap.created', 'wallet_action.swap.succeeded']);
    }
    if (other !== operations) await other[Symbol.asyncDispose]();
  });
});

function hex(text: string): Uint8Array {
  return new Uint8Array(Buffer.from(text, 'hex'));
}
