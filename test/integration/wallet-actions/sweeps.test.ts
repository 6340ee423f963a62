import type { SqlEntityManager } from '@mikro-orm/sql';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { aliceKey, bobKey } from '../../../mocks/authorization-keys.ts';
import { routersOnChain } from '../../../src/adapters/swap-routers.ts';
import { addVault } from '../../../src/domain/money/earn/earn-vault.ts';
import { chainNamed } from '../../../src/engine/assets/known-chains.ts';
import type {
  CreateCryptoDepositAccountResponse,
  EarnDepositActionResponse,
  SwapActionResponse,
  Wallet,
} from '../../../src/generated/schemas.ts';
import type { JobContext } from '../../../src/jobs/job-context.ts';
import type { Chains, EvmChain } from '../../../src/ports/chains.ts';
import {
  openSimulatedChains,
  type SimulatedChains,
} from '../../../src/sandbox/simulated/chains/simulated-chains.ts';
import { databaseKinds } from '../../support/databases.ts';
import { openOperations, type TestOperations } from '../../support/run-operations.ts';
import { automated } from './automated.ts';
import { runJobs } from './run-jobs.ts';

const caip2 = 'eip155:8453';
const router = '0x7a250d5630B4cF539739dF2C5dAcb4c659F2488D';
const usdc = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const eurc = '0x60a3E35Cc302bFA44Cb288Bc5a4F316Fdb1adb42';
const ether = 10n ** 18n;
const isLong = process.env.TEST_LONG === '1';

/** Where the process ends: before or after a commit. */
type Death = 'never' | 'before' | 'after';

describe.each(databaseKinds)('automations that swap, on %s', (kind) => {
  let operations: TestOperations;
  let simulated: SimulatedChains;
  let wallet: Wallet;

  beforeEach(async () => {
    simulated = openSimulatedChains({
      ...{ file: ':memory:', clock: { now: () => operations.clock.nowMs }, confirmAfterMs: undefined },
      knownTokens: () => [
        { caip2, address: usdc, symbol: 'USDC', decimals: 6 },
        { caip2, address: eurc, symbol: 'EURC', decimals: 6 },
      ],
    });
    const chains: Chains = { find: (id) => simulated.find(id), listing: () => simulated.used() };
    operations = await openOperations(kind, { chains });
    connect(operations);
    wallet = await makeWallet();
  });
  afterEach(async () => {
    await operations[Symbol.asyncDispose]();
    await simulated.close();
  });

  function connect({ services }: TestOperations): void {
    const { chains, clock } = services;
    Object.assign(services, { swapRoutes: routersOnChain({ chains, clock, routerOf: () => router }) });
  }

  const { run, detect, runDue, settle, events, inUnitOn, executionsOf, actionsOf } = automated(
    () => operations,
  );

  /** With gas. */
  async function makeWallet(more: object = {}): Promise<Wallet> {
    const made = await run<Wallet>('createWallet', { body: { chain_type: 'ethereum', ...more } });
    await give(null, ether, made);
    await detect();
    return made;
  }

  async function give(tokenAddress: string | null, rawAmount: bigint, to = wallet): Promise<void> {
    await simulated.fund(caip2, { address: to.address, tokenAddress, rawAmount });
  }

  async function makeAutomation(from: string, to: string): Promise<string> {
    const trigger = {
      type: 'deposit',
      assets: { mode: 'include', values: [{ asset_address: from, caip2 }] },
    };
    const action = { type: 'swap', destination_chain_asset: { asset_address: to, caip2 } };
    const body = { owner_id: null, config: { trigger, action } };
    return (await run<{ id: string }>('createWalletAutomation', { body })).id;
  }

  async function setUpVault(): Promise<string> {
    const address = await simulated.earn.addVault(caip2, {
      ...{ name: 'USDC', asset: usdc, decimals: 6, symbol: 'USDC', apyBps: 0, feeBps: 0 },
      ...{ admin: `0x${'0'.repeat(40)}`, feeKind: 'shares', offset: 0 },
    });
    const { id } = await operations.database.orm.em.fork().transactional((em) =>
      addVault(
        operations.context(em as SqlEntityManager),
        {
          ...{ appId: operations.app.id, provider: 'tempo', name: undefined, chain: chainNamed('base')! },
          ...{ address, adminWalletId: null, feeBps: 0 },
        },
        { assetAddress: usdc, assetSymbol: 'USDC', assetDecimals: 6 },
      ),
    );
    return id;
  }

  async function makeVaultAutomation(vault_id: string): Promise<string> {
    const assets = { mode: 'include', values: [{ asset_address: usdc, caip2 }] };
    const config = { trigger: { type: 'deposit', assets }, action: { type: 'earn_deposit', vault_id } };
    const body = { owner_id: null, config };
    return (await run<{ id: string }>('createWalletAutomation', { body })).id;
  }

  function attach(
    id: string,
    { to = wallet, params }: { to?: Wallet; params?: object } = {},
    signWith: string[] = [],
  ) {
    const body = { automation_ids: [id], ...(params && { params }) };
    return run('attachWalletAutomations', { path: { wallet_id: to.id }, body, signWith });
  }

  const executions = (of = wallet) => executionsOf(of.id);
  const swapsOf = (of = wallet) => actionsOf<SwapActionResponse>(of.id);

  const held = async (token: string | null, of = wallet): Promise<bigint> =>
    (await simulated.find(caip2)!.balances(of.address, [token]))[0]!;

  test('a deposit is swapped as a whole, once, and the events say so', async () => {
    const automation = await makeAutomation(eurc, usdc);
    await attach(automation);
    await give(eurc, 1_000_000n);
    await give(eurc, 2_000_000n);
    await settle();
    const [first, second] = await executions();
    const actionId = first!.wallet_action_id;
    expect(first).toMatchObject({ status: 'completed', submitted_at: expect.any(String), failed_at: null });
    expect(first!.completed_at).not.toBeNull();
    expect(second).toMatchObject({ status: 'skipped', wallet_action_id: null, failure_reason: null });
    const [swap, ...others] = await swapsOf();
    expect(others).toEqual([]);
    expect(swap).toMatchObject({ id: actionId, status: 'succeeded', input_amount: '3000000' });
    expect(await held(eurc)).toBe(0n);
    expect(await held(usdc)).toBe(BigInt(swap!.output_amount!));
    const recorded = (await events()).filter(({ type }) => /^wallet_a/.test(String(type)));
    expect(recorded.map(({ type }) => type)).toEqual([
      'wallet_action.swap.created',
      'wallet_automation.submitted',
      'wallet_action.swap.succeeded',
    ]);
    expect(recorded[1]).toEqual({
      type: 'wallet_automation.submitted',
      automation_id: automation,
      action_id: actionId,
      wallet_id: wallet.id,
      trigger_id: first!.id,
      trigger_caip2: caip2,
      trigger_asset_address: eurc,
      created_at: first!.created_at,
    });
  });

  test('automations in opposite directions do not feed each other', async () => {
    await attach(await makeAutomation(eurc, usdc));
    await attach(await makeAutomation(usdc, eurc));
    await give(eurc, 1_000_000n);
    await settle();
    await settle();
    expect((await executions()).map(({ status }) => status)).toEqual(['completed']);
    expect(await held(eurc)).toBe(0n);
  });

  test('the paymaster pays the gas, so the whole native balance is swept; the proceeds go where the owner said', async () => {
    const other = await makeWallet();
    const params = { destination_address: other.address };
    await attach(await makeAutomation('native', usdc), { params });
    await give(null, ether);
    await settle();
    expect((await executions()).map(({ status }) => status)).toEqual(['completed']);
    expect(await held(null)).toBe(0n);
    expect(await held(usdc)).toBe(0n);
    expect(await held(usdc, other)).toBeGreaterThan(0n);
  });

  test('without a paymaster the gas is left', async () => {
    const { find } = operations.services.chains;
    const unsponsored = (id: string) => {
      const { bundler: _, ...chain } = find(id) as EvmChain;
      return chain as EvmChain;
    };
    Object.assign(operations.services.chains, { find: unsponsored });
    await attach(await makeAutomation('native', usdc));
    await give(null, ether);
    await settle();
    expect((await executions()).map(({ status }) => status)).toEqual(['completed']);
    const left = await held(null);
    expect(left).toBeGreaterThan(0n);
    expect(left).toBeLessThan(ether / 10n);
    const poor = await run<Wallet>('createWallet', { body: { chain_type: 'ethereum' } });
    await attach(await makeAutomation(eurc, usdc), { to: poor });
    await give(eurc, 1_000_000n, poor);
    await settle();
    expect(await executions(poor)).toMatchObject([{ status: 'failed', failure_reason: expect.any(String) }]);
    expect(await held(eurc, poor)).toBe(1_000_000n);
  });

  test('an owned wallet is swept without a signature; its policy is evaluated at the time of the run', async () => {
    const owner = { public_key: aliceKey.publicKey };
    const owned = await makeWallet({ owner });
    await attach(await makeAutomation(eurc, usdc), { to: owned }, [aliceKey.privateKey]);
    await give(eurc, 1_000_000n, owned);
    await settle();
    expect((await executions(owned)).map(({ status }) => status)).toEqual(['completed']);
    const policy = await run<{ id: string }>('createPolicy', {
      body: {
        ...{ version: '1.0', name: 'no swaps', chain_type: 'ethereum' },
        rules: [{ name: 'signing only', method: 'personal_sign', action: 'ALLOW', conditions: [] }],
      },
    });
    const body = { policy_ids: [policy.id] };
    const path = { wallet_id: owned.id };
    await run('updateWallet', { path, body, signWith: [aliceKey.privateKey] });
    await give(eurc, 2_000_000n, owned);
    await settle();
    const [, denied] = await executions(owned);
    expect(denied).toMatchObject({ status: 'failed', failure_reason: expect.stringContaining('policy') });
    expect(await held(eurc, owned)).toBe(2_000_000n);
  });

  test('the consent of an owner ends when the wallet is given away, also if it is given back', async () => {
    const owned = await makeWallet({ owner: { public_key: aliceKey.publicKey } });
    await attach(await makeAutomation(eurc, usdc), { to: owned }, [aliceKey.privateKey]);
    await give(eurc, 1_000_000n, owned);
    await detect();
    const path = { wallet_id: owned.id };
    for (const [from, to] of [[aliceKey, bobKey] as const, [bobKey, aliceKey] as const]) {
      const body = { owner: { public_key: to.publicKey } };
      await run('updateWallet', { path, body, signWith: [from.privateKey] });
    }
    await settle();
    expect(await executions(owned)).toMatchObject([
      { status: 'failed', failure_reason: 'the owner of the wallet changed after the deposit' },
    ]);
    expect(await held(eurc, owned)).toBe(1_000_000n);
  });

  test('an asset without a pool fails with a sentence', async () => {
    const unknown = '0x1111111111111111111111111111111111111111';
    await attach(await makeAutomation(unknown, usdc));
    await simulated.fund(caip2, {
      ...{ address: wallet.address, tokenAddress: unknown, rawAmount: 7n },
      ...{ decimals: 6, symbol: 'NONE' },
    });
    await settle();
    expect(await executions()).toMatchObject([{ status: 'failed', failure_reason: expect.any(String) }]);
  });

  type Step =
    | { readonly kind: 'give'; readonly token: string; readonly amount: number; readonly to: number }
    | { readonly kind: 'attach' | 'detach' | 'change owner' | 'detect' | 'settle' }
    | { readonly kind: 'run'; readonly death: Death; readonly both: boolean };

  const step: fc.Arbitrary<Step> = fc.oneof(
    {
      weight: 5,
      arbitrary: fc.record({
        kind: fc.constant('give' as const),
        token: fc.constantFrom(eurc, usdc),
        amount: fc.integer({ min: 10, max: 5_000_000 }),
        to: fc.nat(),
      }),
    },
    { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('attach' as const, 'detach' as const) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('change owner' as const) }) },
    { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('detect' as const, 'settle' as const) }) },
    {
      weight: 4,
      arbitrary: fc.record({
        kind: fc.constant('run' as const),
        death: fc.constantFrom<Death>('never', 'never', 'before', 'after'),
        both: fc.boolean(),
      }),
    },
  );

  /** A wallet that receives deposits: the swept one, or one at a deposit address for it. */
  interface Subject {
    readonly wallet: Pick<Wallet, 'id' | 'address'>;
    /** Whether deposits to it start something now. */
    isOpen: boolean;
    readonly given: Record<string, bigint>;
    undetected: number;
    matching: number;
  }

  /** A process that ends around the third commit of a run. */
  function dying(served: TestOperations, death: Death): JobContext['inUnit'] {
    const inUnit = inUnitOn(served);
    let commits = 0;
    return async (work) => {
      commits += 1;
      const isLast = commits >= 2 && death !== 'never';
      if (isLast && death === 'before') {
        return inUnit(async (em, notes) => {
          await work(em, notes);
          throw new Error('the process ends before the commit');
        });
      }
      const result = await inUnit(work);
      if (isLast) throw new Error('the process ends after the commit');
      return result;
    };
  }

  /** What an action has taken out of a wallet. */
  function takenBy(action: SwapActionResponse | EarnDepositActionResponse, token: string): bigint {
    if (action.type === 'swap') {
      return action.input_token === token ? BigInt(action.input_amount ?? 0) : 0n;
    }
    return token === usdc && action.status === 'succeeded' ? BigInt(action.raw_amount) : 0n;
  }

  test('random deposits, detachments, owners, deaths and processes: each deposit has one execution, each unit moves once', async () => {
    const vault = await setUpVault();
    const automations = [await makeAutomation(eurc, 'native'), await makeVaultAutomation(vault)];
    const other = kind === 'postgres' ? await operations.anotherProcess() : undefined;
    if (other !== undefined) connect(other);
    const keys = [aliceKey, bobKey];
    const values = ['eurc', 'usdc'].map((asset) => ({ asset, chain: 'base' }));
    const route = {
      ...{ type: 'inline_route', source: { mode: 'include', values } },
      destination: { asset: 'eth', chain: 'base' },
    };
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 8, maxLength: 25 }), async (steps) => {
        wallet = await makeWallet({ owner: { public_key: aliceKey.publicKey } });
        let owner = 0;
        const path = { wallet_id: wallet.id };
        const signed = () => ({ path, signWith: [keys[owner % 2]!.privateKey] });
        const newSubject = (of: Subject['wallet']): Subject => ({
          ...{ wallet: of, isOpen: false, given: { [eurc]: 0n, [usdc]: 0n }, undetected: 0, matching: 0 },
        });
        const subjects = [newSubject(wallet)];
        const detectAll = async (): Promise<void> => {
          for (const subject of subjects) {
            if (subject.isOpen) subject.matching += subject.undetected;
            subject.undetected = 0;
          }
          await detect();
        };
        const openRoute = async (): Promise<void> => {
          const input = { ...signed(), body: route };
          const { deposit_accounts: made } = await run<CreateCryptoDepositAccountResponse>(
            'createCryptoDepositAccount',
            input,
          );
          const { wallet_id: id, deposit_address: address } = made[0]!;
          const known = subjects.find((each) => each.wallet.id === id);
          const subject = known ?? newSubject({ id, address });
          if (known === undefined) subjects.push(subject);
          subject.isOpen = true;
        };
        const act: Record<Exclude<Step['kind'], 'give' | 'run'>, () => Promise<unknown>> = {
          async attach() {
            await run('attachWalletAutomations', { ...signed(), body: { automation_ids: automations } });
            subjects[0]!.isOpen = true;
            await openRoute();
          },
          async detach() {
            await run('detachWalletAutomations', { ...signed(), body: { automation_ids: automations } });
            subjects[0]!.isOpen = false;
          },
          async 'change owner'() {
            const body = { owner: { public_key: keys[(owner + 1) % 2]!.publicKey } };
            await run('updateWallet', { ...signed(), body });
            owner += 1;
            for (const subject of subjects) subject.isOpen = false;
          },
          detect: detectAll,
          async settle() {
            await detectAll();
            operations.clock.nowMs += 5_000;
            await runJobs(operations);
          },
        };
        for (const each of steps) {
          if (each.kind === 'give') {
            const subject = subjects[each.to % subjects.length]!;
            await simulated.fund(caip2, {
              ...{
                address: subject.wallet.address,
                tokenAddress: each.token,
                rawAmount: BigInt(each.amount),
              },
            });
            subject.given[each.token]! += BigInt(each.amount);
            subject.undetected += 1;
          } else if (each.kind === 'run') {
            const served = each.both && other !== undefined ? [operations, other] : [operations];
            await Promise.allSettled(served.map((one) => runDue(one, dying(one, each.death))));
          } else await act[each.kind]();
          for (const { wallet: of } of subjects) {
            const open = (await executionsOf(of.id)).filter(({ status }) => status === 'submitted');
            const assets = open.map(({ trigger_asset_address: asset }) => asset);
            expect(new Set(assets).size).toBe(assets.length);
          }
        }
        await detectAll();
        for (let round = 0; round < 12; round += 1) await settle();
        for (const [index, { wallet: of, given, matching }] of subjects.entries()) {
          const ended = await executionsOf(of.id);
          expect(ended).toHaveLength(matching);
          // Only the end of the consent fails an execution.
          const failed = ended.filter(({ status }) => status !== 'completed' && status !== 'skipped');
          const reasons = failed.map(({ failure_reason: reason }) => reason);
          expect(reasons.filter((reason) => owner === 0 || !/owner/.test(reason ?? ''))).toEqual([]);
          const actions = await actionsOf<SwapActionResponse | EarnDepositActionResponse>(of.id);
          expect(actions.map(({ id }) => id).sort()).toEqual(
            ended.flatMap(({ wallet_action_id: id }) => id ?? []).sort(),
          );
          for (const token of [eurc, usdc]) {
            const taken = actions.reduce((sum, action) => sum + takenBy(action, token), 0n);
            const [left = 0n] = await simulated.find(caip2)!.balances(of.address, [token]);
            expect(taken + left).toBe(given[token]);
          }
          if (index === 0) continue;
          for (const { id: order_id, status } of ended) {
            const order = await run<{ status: string }>('getCryptoDepositOrder', {
              path: { ...path, order_id },
            });
            if (status === 'completed') expect(order.status).toBe('succeeded');
            else expect(['succeeded', 'rejected']).toContain(order.status);
          }
        }
      }),
      { numRuns: isLong ? 60 : 3, endOnFailure: !isLong },
    );
    await other?.[Symbol.asyncDispose]();
  }, 600_000);
});
