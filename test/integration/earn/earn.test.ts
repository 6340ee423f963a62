import type { SqlEntityManager } from '@mikro-orm/sql';
import fc from 'fast-check';
import { decodeFunctionResult, encodeFunctionData, erc20Abi, erc4626Abi, type Hex, hexToBytes } from 'viem';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { addVault, type EarnVault } from '../../../src/domain/money/earn/earn-vault.ts';
import type { Tables } from '../../../src/domain/tables.ts';
import { chainNamed } from '../../../src/engine/assets/known-chains.ts';
import type { OperationId } from '../../../src/generated/operations.ts';
import type { Wallet, WalletActionResponse } from '../../../src/generated/schemas.ts';
import type { Chains, EvmChain } from '../../../src/ports/chains.ts';
import {
  openSimulatedChains,
  type SimulatedChains,
} from '../../../src/sandbox/simulated/chains/simulated-chains.ts';
import { databaseKinds } from '../../support/databases.ts';
import { type Loss, withLoss } from '../../support/nodes/lossy-chain.ts';
import { openOperations, type TestOperations } from '../../support/run-operations.ts';
import { runJobs } from '../wallet-actions/run-jobs.ts';

const caip2 = 'eip155:8453';
const usdc = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const reward = '0x6f470988d35CD75390B4CA8Aee1a922f1BDbE9E7';
const ether = 10n ** 18n;
const week = 7 * 86_400;
const isLong = process.env.TEST_LONG === '1';

type EarnAction = WalletActionResponse & {
  readonly vault_id?: string;
  readonly raw_amount?: string;
  readonly share_amount?: string | null;
  readonly rewards?: readonly { readonly token_address: string; readonly amount: string }[];
};

const operationsOfKinds = {
  deposit: 'depositEthereumEarn',
  withdraw: 'withdrawEthereumEarn',
  leave: 'withdrawEthereumEarn',
  claim: 'claimEthereumEarnIncentive',
  collect: 'collectEthereumEarnFees',
} as const satisfies Record<string, OperationId>;

describe.each(databaseKinds)('earn on %s', (kind) => {
  let operations: TestOperations;
  let chains: SimulatedChains;
  let loss: Loss;
  let wallets: readonly Wallet[];
  /** One that keeps the fees of its admin, and one without interest whose shares have more decimals. */
  let vaults: readonly EarnVault[];
  const clock = { nowMs: 0 };
  const evm = (): EvmChain => chains.find(caip2) as EvmChain;

  beforeEach(async () => {
    loss = 'nothing';
    chains = openSimulatedChains({
      ...{ file: ':memory:', clock: { now: () => clock.nowMs }, confirmAfterMs: undefined },
      knownTokens: () => [{ caip2, address: usdc, symbol: 'USDC', decimals: 6 }],
    });
    const lossy: Chains = { find: (id) => withLoss(chains.find(id), () => loss) };
    operations = await openOperations(kind, { chains: lossy });
    clock.nowMs = operations.clock.nowMs;
    connect(operations);
  });
  afterEach(async () => {
    await operations[Symbol.asyncDispose]();
    await chains.close();
  });

  const connect = (served: TestOperations) =>
    Object.assign(served.services, {
      chains: operations.services.chains,
      ...{ incentives: chains.earn, vaultRates: chains.earn },
    });

  async function wait(seconds: number, served = [operations]): Promise<void> {
    clock.nowMs += seconds * 1000;
    for (const each of served) each.clock.nowMs = clock.nowMs;
    await Promise.all(served.map(runJobs));
  }

  async function makeWallet(): Promise<Wallet> {
    const { body } = await operations.run('createWallet', { body: { chain_type: 'ethereum' } });
    const { address } = body as Wallet;
    await chains.fund(caip2, { address, tokenAddress: null, rawAmount: ether });
    await chains.fund(caip2, { address, tokenAddress: usdc, rawAmount: 1_000_000_000n });
    return body as Wallet;
  }

  async function makeVault(admin: Wallet, terms: { apyBps: number; offset: number }): Promise<EarnVault> {
    const { apyBps, offset } = terms;
    const address = await chains.earn.addVault(caip2, {
      ...{ name: `vault ${offset}`, asset: usdc, symbol: 'USDC', decimals: 6, admin: admin.address },
      ...{ apyBps, offset, feeBps: 2000, feeKind: offset === 0 ? 'claimable' : 'shares' },
    });
    return operations.database.orm.em.fork().transactional((em) =>
      addVault(
        operations.context(em as SqlEntityManager),
        {
          ...{ appId: operations.app.id, provider: offset === 0 ? 'aave' : 'morpho', name: undefined },
          ...{ chain: chainNamed('base')!, address, adminWalletId: admin.id, feeBps: 2000 },
        },
        { assetAddress: usdc, assetSymbol: 'USDC', assetDecimals: 6 },
      ),
    );
  }

  async function makeWorld(): Promise<void> {
    wallets = [await makeWallet(), await makeWallet()];
    vaults = [
      await makeVault(wallets[0]!, { apyBps: 1000, offset: 0 }),
      await makeVault(wallets[0]!, { apyBps: 0, offset: 12 }),
    ];
  }

  /** A view of a contract, by the ABI of another library. */
  async function ask(to: string, functionName: 'convertToAssets' | 'totalAssets', ...args: bigint[]) {
    const data = encodeFunctionData({ abi: erc4626Abi, functionName, args } as never);
    const answer = await evm().read({ to, data: hexToBytes(data) });
    const result = `0x${Buffer.from(answer).toString('hex')}` as Hex;
    return decodeFunctionResult({
      abi: [...erc4626Abi, ...erc20Abi],
      functionName,
      data: result,
    } as never) as bigint;
  }

  const holdings = ({ address }: Wallet) =>
    evm().balances(address, [null, usdc, reward, ...vaults.map((vault) => vault.address)]);

  async function actionsOf(wallet: Wallet): Promise<readonly EarnAction[]> {
    const input = { path: { wallet_id: wallet.id }, query: { limit: 100 } };
    const { body } = await operations.run('listWalletActions', input);
    return (body as { data: EarnAction[] }).data;
  }

  /** Lets time pass until nothing is pending. */
  async function settle(): Promise<void> {
    for (let round = 0; round < 12; round += 1) {
      await wait(70);
      const actions = (await Promise.all(wallets.map(actionsOf))).flat();
      if (actions.every(({ status }) => status !== 'pending')) return;
    }
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

  interface Step {
    readonly kind: keyof typeof operationsOfKinds | 'reward' | 'pause';
    readonly wallet: number;
    readonly vault: number;
    readonly amount: bigint;
    readonly loss: Loss;
    readonly seconds: number;
  }
  const step: fc.Arbitrary<Step> = fc.record({
    kind: fc.constantFrom(
      ...(['deposit', 'deposit', 'deposit', 'deposit', 'withdraw', 'withdraw', 'leave'] as const),
      ...(['claim', 'collect', 'reward', 'pause'] as const),
    ),
    wallet: fc.nat(1),
    vault: fc.nat(1),
    amount: fc.bigInt({ min: 1n, max: 400_000_000n }),
    loss: fc.constantFrom<Loss>('nothing', 'nothing', 'nothing', 'request', 'answer'),
    seconds: fc.constantFrom(0, 0, 3, 20, week),
  });

  /** The first step of each walk, so that there is something to withdraw. It is confirmed before a pause could revert it. */
  const opening: Step = {
    kind: 'deposit',
    wallet: 0,
    vault: 0,
    amount: 100_000_000n,
    loss: 'nothing',
    seconds: 20,
  };

  /** What a step of a random walk gives out. */
  async function take({ kind, wallet: at, vault: of, amount, ...step }: Step): Promise<bigint> {
    const [wallet, vault] = [wallets[at]!, vaults[of]!];
    if (kind === 'pause') {
      await chains.earn.changeVault(caip2, vault.address, { isPaused: amount % 3n === 0n });
      return 0n;
    }
    if (kind === 'reward') {
      const token = { tokenAddress: reward, decimals: 18, symbol: 'RWD' };
      await chains.earn.addReward(caip2, { address: wallet.address, rawAmount: amount, ...token });
      return amount;
    }
    const path = { wallet_id: wallet.id };
    const query = { vault_id: vault.id };
    const { body: position } = await operations.run('getEthereumEarnPosition', { path, query });
    const all = (position as { assets_in_vault: string }).assets_in_vault;
    const bodies = {
      ...{
        deposit: { ...query, raw_amount: String(amount) },
        withdraw: { ...query, raw_amount: String(amount) },
      },
      ...{ leave: { ...query, raw_amount: all }, claim: { chain: 'base' }, collect: query },
    };
    loss = step.loss;
    const { status } = await operations.run(operationsOfKinds[kind], { path, body: bodies[kind] });
    loss = 'nothing';
    expect([200, 400]).toContain(status);
    return 0n;
  }

  /** INVARIANT of vaults: what all shares are worth is there. */
  async function requireSolvent(): Promise<void> {
    for (const { address } of vaults) {
      const shares = await Promise.all(
        wallets.map(async (wallet) => (await evm().balances(wallet.address, [address]))[0] ?? 0n),
      );
      const worth = await Promise.all(shares.map((share) => ask(address, 'convertToAssets', share)));
      expect(await ask(address, 'totalAssets')).toBeGreaterThanOrEqual(
        worth.reduce((sum, each) => sum + each),
      );
    }
  }

  /** What the succeeded actions of a wallet say that they moved to it: of the asset, the reward and each share. */
  async function movedTo(wallet: Wallet): Promise<readonly bigint[]> {
    let [asset, claimed] = [0n, 0n];
    const shares = vaults.map(() => 0n);
    for (const action of await actionsOf(wallet)) {
      expect(action.status).not.toBe('pending');
      expect(await eventTypes(action.id)).toEqual([
        `wallet_action.${action.type}.created`,
        `wallet_action.${action.type}.${action.status}`,
      ]);
      if (action.status !== 'succeeded') continue;
      const sign = action.type === 'earn_deposit' ? -1n : 1n;
      asset += sign * BigInt(action.raw_amount ?? 0);
      claimed += BigInt(action.rewards?.[0]?.amount ?? 0);
      const index = vaults.findIndex(({ id }) => id === action.vault_id);
      if (index >= 0) shares[index]! -= sign * BigInt(action.share_amount ?? 0);
    }
    return [asset, claimed, ...shares];
  }

  test('random actions with lost connections: every unit is accounted for, and each action ends once', async () => {
    const counts = new Map<string, number>();
    const walk = fc.array(step, { minLength: 10, maxLength: isLong ? 40 : 10 });
    await fc.assert(
      fc.asyncProperty(walk, async (steps) => {
        await makeWorld();
        const start = await Promise.all(wallets.map(holdings));
        const totals = () => Promise.all([null, usdc].map((token) => chains.total(caip2, token)));
        const given = await totals();
        const rewarded = await chains.total(caip2, reward);
        let rewards = 0n;
        for (const each of [opening, ...steps]) {
          rewards += await take(each);
          await wait(each.seconds);
          await requireSolvent();
        }
        await settle();
        expect(await totals()).toEqual(given);
        expect(await chains.total(caip2, reward)).toBe(rewarded + rewards);
        for (const [index, wallet] of wallets.entries()) {
          const [gas, ...before] = start[index]!;
          const [gasLeft, ...held] = await holdings(wallet);
          expect(gasLeft).toBeLessThanOrEqual(gas!);
          const moved = await movedTo(wallet);
          expect(held).toEqual(before.map((amount, token) => amount + moved[token]!));
          for (const { type, status } of await actionsOf(wallet)) {
            counts.set(`${type} ${status}`, (counts.get(`${type} ${status}`) ?? 0) + 1);
          }
        }
      }),
      { numRuns: isLong ? 40 : 1 },
    );
    expect(counts.get('earn_deposit succeeded')).toBeGreaterThan(0);
  }, 580_000);

  // The database matters little here.
  test.runIf(kind === 'sqlite' || isLong)(
    'without interest no wallet takes out more than was put in',
    async () => {
      await makeWorld();
      const [wallet, other] = wallets as [Wallet, Wallet];
      const vault = vaults[1]!;
      const act = (
        operation: 'depositEthereumEarn' | 'withdrawEthereumEarn',
        who: Wallet,
        raw_amount: string,
      ) =>
        operations.run(operation, { path: { wallet_id: who.id }, body: { vault_id: vault.id, raw_amount } });
      const [, start] = await holdings(wallet);
      await act('depositEthereumEarn', wallet, '333333333');
      await act('depositEthereumEarn', other, '7');
      await wait(20);
      for (let round = 0; round < (isLong ? 5 : 1); round += 1) {
        const input = { path: { wallet_id: wallet.id }, query: { vault_id: vault.id } };
        const { body } = await operations.run('getEthereumEarnPosition', input);
        const all = BigInt((body as { assets_in_vault: string }).assets_in_vault);
        await act('withdrawEthereumEarn', wallet, String(all));
        await wait(20);
        const [, now] = await holdings(wallet);
        expect(now).toBeLessThanOrEqual(start!);
        await act('depositEthereumEarn', wallet, String(all));
        await wait(20);
      }
    },
  );

  test('two processes that run the jobs end each action once, and two claims pay once', async () => {
    await makeWorld();
    const other = kind === 'postgres' ? await operations.anotherProcess() : operations;
    if (other !== operations) connect(other);
    const served = [...new Set([operations, other])];
    const [wallet] = wallets as [Wallet];
    const path = { wallet_id: wallet.id };
    const token = { tokenAddress: reward, decimals: 18, symbol: 'RWD' };
    await chains.earn.addReward(caip2, { address: wallet.address, rawAmount: 9n, ...token });
    const deposit = { path, body: { vault_id: vaults[0]!.id, raw_amount: '5000000' } };
    const claim = { path, body: { chain: 'base' } };
    for (const input of [
      () => Promise.all(served.map((each) => each.run('depositEthereumEarn', deposit))),
      () => Promise.all([operations, other].map((each) => each.run('claimEthereumEarnIncentive', claim))),
    ]) {
      for (const { status } of await input()) expect(status).toBe(200);
      for (let round = 0; round < 2; round += 1) await wait(70, served);
    }
    const actions = await actionsOf(wallet);
    expect(actions.map(({ status }) => status)).toEqual(actions.map(() => 'succeeded'));
    const moved = await movedTo(wallet);
    expect(moved.slice(0, 2)).toEqual([BigInt(served.length) * -5_000_000n, 9n]);
    if (other !== operations) await other[Symbol.asyncDispose]();
  });
});
