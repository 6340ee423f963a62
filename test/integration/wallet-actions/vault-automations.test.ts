import type { SqlEntityManager } from '@mikro-orm/sql';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { aliceKey } from '../../../mocks/authorization-keys.ts';
import { createApp } from '../../../src/domain/access/apps/app.ts';
import { addVault, type EarnVault } from '../../../src/domain/money/earn/earn-vault.ts';
import { chainNamed } from '../../../src/engine/assets/known-chains.ts';
import type {
  EarnDepositActionResponse,
  Wallet,
  WalletAutomationReindexResponse,
} from '../../../src/generated/schemas.ts';
import type { Chains, EvmChain } from '../../../src/ports/chains.ts';
import {
  openSimulatedChains,
  type SimulatedChains,
} from '../../../src/sandbox/simulated/chains/simulated-chains.ts';
import { databaseKinds } from '../../support/databases.ts';
import { openOperations, type TestOperations } from '../../support/run-operations.ts';
import { automated } from './automated.ts';

const caip2 = 'eip155:8453';
const usdc = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const eurc = '0x60a3E35Cc302bFA44Cb288Bc5a4F316Fdb1adb42';
const owner = { public_key: aliceKey.publicKey };
const signWith = [aliceKey.privateKey];

describe.each(databaseKinds)('automations that deposit into vaults, on %s', (kind) => {
  let operations: TestOperations;
  let simulated: SimulatedChains;
  let vault: EarnVault;
  let wallet: Wallet;
  const { run, detect, settle, events, executionsOf, actionsOf } = automated(() => operations);

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
    vault = await setUpVault(operations.app.id);
    wallet = await run<Wallet>('createWallet', { body: { chain_type: 'ethereum', owner } });
    await detect();
  });
  afterEach(async () => {
    await operations[Symbol.asyncDispose]();
    await simulated.close();
  });

  async function setUpVault(appId: string): Promise<EarnVault> {
    const terms = { asset: usdc, decimals: 6, symbol: 'USDC', apyBps: 410, feeBps: 0 };
    const admin = `0x${'0'.repeat(40)}`;
    const address = await simulated.earn.addVault(caip2, {
      ...{ name: `Vault of ${appId}`, ...terms, admin, feeKind: 'shares', offset: 0 },
    });
    const chain = chainNamed('base')!;
    return operations.database.orm.em
      .fork()
      .transactional((em) =>
        addVault(
          operations.context(em as SqlEntityManager),
          { appId, provider: 'tempo', name: undefined, chain, address, adminWalletId: null, feeBps: 0 },
          { assetAddress: usdc, assetSymbol: 'USDC', assetDecimals: 6 },
        ),
      );
  }

  const configOf = (vaultId: string, assets: object) => ({
    trigger: { type: 'deposit', assets },
    action: { type: 'earn_deposit', vault_id: vaultId },
  });
  const onlyUsdc = { mode: 'include', values: [{ asset: 'usdc', chain: 'base' }] };

  async function attachNew(): Promise<string> {
    const body = { owner_id: null, config: configOf(vault.id, onlyUsdc) };
    const { id } = await run<{ id: string }>('createWalletAutomation', { body });
    const path = { wallet_id: wallet.id };
    await run('attachWalletAutomations', { path, body: { automation_ids: [id] }, signWith });
    return id;
  }

  const give = (rawAmount: bigint) =>
    simulated.fund(caip2, { address: wallet.address, tokenAddress: usdc, rawAmount });
  const held = async (token: string): Promise<bigint> =>
    (await simulated.find(caip2)!.balances(wallet.address, [token]))[0]!;
  const executions = () => executionsOf(wallet.id);

  test('what is deposited earns, without gas and without a signature, and the events say so', async () => {
    const automation = await attachNew();
    await give(1_000_000n);
    await give(2_000_000n);
    await settle();
    const [first, second] = await executions();
    expect([first!.status, second!.status]).toEqual(['completed', 'skipped']);
    const [deposit, ...others] = await actionsOf<EarnDepositActionResponse>(wallet.id);
    expect(others).toEqual([]);
    expect(deposit).toMatchObject({
      ...{ id: first!.wallet_action_id, type: 'earn_deposit', status: 'succeeded' },
      ...{ vault_id: vault.id, raw_amount: '3000000' },
    });
    expect([await held(usdc), await held(vault.address)]).toEqual([0n, BigInt(deposit!.share_amount!)]);
    const recorded = (await events()).filter(({ type }) => /^wallet_a/.test(String(type)));
    expect(recorded.map(({ type }) => type)).toEqual([
      'wallet_action.earn_deposit.created',
      'wallet_automation.submitted',
      'wallet_action.earn_deposit.succeeded',
    ]);
    expect(recorded[1]).toMatchObject({
      ...{ automation_id: automation, action_id: deposit!.id, trigger_id: first!.id },
      ...{ wallet_id: wallet.id, trigger_caip2: caip2, trigger_asset_address: usdc },
    });
  });

  test('without a paymaster the wallet pays, with an approval of exactly the amount', async () => {
    const { find } = operations.services.chains;
    const unsponsored = (id: string) => {
      const { bundler: _, ...chain } = find(id) as EvmChain;
      return chain as EvmChain;
    };
    Object.assign(operations.services.chains, { find: unsponsored });
    await simulated.fund(caip2, { address: wallet.address, tokenAddress: null, rawAmount: 10n ** 18n });
    await attachNew();
    await give(1_000_000n);
    await settle();
    expect((await executions()).map(({ status }) => status)).toEqual(['completed']);
    expect(await held(usdc)).toBe(0n);
  });

  test('the policy of the wallet is evaluated at the time of the run', async () => {
    const policyOf = async (value: string) => {
      const condition = { field_source: 'action_request_body', field: 'vault_id', operator: 'eq', value };
      const rule = { name: 'one vault', method: 'earn_deposit', action: 'ALLOW', conditions: [condition] };
      const body = { version: '1.0', name: 'vaults', chain_type: 'ethereum', rules: [rule] };
      return [(await run<{ id: string }>('createPolicy', { body })).id];
    };
    const path = { wallet_id: wallet.id };
    await attachNew();
    await run('updateWallet', { path, body: { policy_ids: await policyOf('another') }, signWith });
    await give(1_000_000n);
    await settle();
    await run('updateWallet', { path, body: { policy_ids: await policyOf(vault.id) }, signWith });
    await give(2_000_000n);
    await settle();
    const [denied, allowed] = await executions();
    expect(denied).toMatchObject({
      ...{ status: 'failed', wallet_action_id: null, failure_reason: expect.stringContaining('policy') },
    });
    expect(allowed!.status).toBe('completed');
    expect(await held(usdc)).toBe(0n);
  });

  test('a vault that takes nothing fails with a sentence, and the deposit stays in the wallet', async () => {
    await attachNew();
    await simulated.earn.changeVault(caip2, vault.address, { isPaused: true });
    await give(1_000_000n);
    await settle();
    expect(await executions()).toMatchObject([
      { status: 'failed', failure_reason: expect.stringContaining('the vault takes at most 0') },
    ]);
    expect(await held(usdc)).toBe(1_000_000n);
  });

  test('what the wallet withdraws from a vault starts nothing, unless it is reindexed', async () => {
    await attachNew();
    await give(1_000_000n);
    await settle();
    await simulated.fund(caip2, { address: wallet.address, tokenAddress: null, rawAmount: 10n ** 18n });
    const path = { wallet_id: wallet.id };
    await run('withdrawEthereumEarn', { path, body: { vault_id: vault.id, raw_amount: '400000' }, signWith });
    await settle();
    expect(await executions()).toHaveLength(1);
    const body = { wallet_id: wallet.id, chain: 'base', asset_address: usdc };
    const { results } = await run<WalletAutomationReindexResponse>('reindexWalletAutomation', { body });
    expect(results).toMatchObject([{ status: 'submitted', raw_balance: '400000' }]);
    await settle();
    expect((await executions()).map(({ status }) => status)).toEqual(['completed', 'completed']);
    expect(await held(usdc)).toBe(0n);
  });

  test.each<[string, object, string]>([
    ['every asset', { mode: 'all' }, '/config/trigger/assets:'],
    [
      'all but one asset',
      { mode: 'exclude', values: [{ asset: 'usdc', chain: 'base' }] },
      '/config/trigger/assets:',
    ],
    [
      'another asset',
      { mode: 'include', values: [{ asset: 'eurc', chain: 'base' }] },
      '/config/trigger/assets:',
    ],
    [
      'the asset on another chain',
      { mode: 'include', values: [{ asset: 'usdc', chain: 'ethereum' }] },
      '/config/trigger/assets:',
    ],
    [
      'a second asset',
      {
        mode: 'include',
        values: [
          { asset: 'usdc', chain: 'base' },
          { asset: 'eurc', chain: 'base' },
        ],
      },
      '/config/trigger/assets:',
    ],
  ])('a trigger by %s is refused for a vault', async (_, assets, field) => {
    const body = { owner_id: null, config: configOf(vault.id, assets) };
    const refused = await operations.run('createWalletAutomation', { body });
    expect(refused).toMatchObject({
      ...{ status: 400, body: { code: 'invalid_data', error: expect.stringContaining(field) } },
    });
    const id = await attachNew();
    const path = { automation_id: id };
    expect(
      await operations.run('updateWalletAutomation', { path, body: { config: body.config } }),
    ).toMatchObject({ status: 400, body: refused.body });
  });

  test('a vault of another app is unknown, and a vault takes no parameters', async () => {
    const other = await operations.database.orm.em.fork().transactional((em) => {
      const context = operations.context(em as SqlEntityManager);
      return createApp(context, { name: 'Other' });
    });
    const theirs = await setUpVault(other.app.id);
    for (const id of [theirs.id, 'unknown']) {
      const body = { owner_id: null, config: configOf(id, onlyUsdc) };
      expect(await operations.run('createWalletAutomation', { body })).toMatchObject({
        status: 400,
        body: {
          ...{ code: 'invalid_data', error: expect.stringContaining('/config/action/vault_id:') },
        },
      });
    }
    const automation = await attachNew();
    const params = { destination_address: wallet.address };
    const body = { automation_ids: [automation], params };
    const path = { wallet_id: wallet.id };
    expect(await operations.run('attachWalletAutomations', { path, body, signWith })).toMatchObject({
      ...{ status: 400, body: { code: 'invalid_data', error: expect.stringContaining('/params:') } },
    });
  });
});
