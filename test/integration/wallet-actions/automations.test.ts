import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { aliceKey } from '../../../mocks/authorization-keys.ts';
import type { Wallet, WalletAutomationExecutionResponse } from '../../../src/generated/schemas.ts';
import { followDeposits } from '../../../src/jobs/follow-deposits.ts';
import { runAutomations } from '../../../src/jobs/run-automations.ts';
import type { Chains } from '../../../src/ports/chains.ts';
import {
  openSimulatedChains,
  type SimulatedChains,
} from '../../../src/sandbox/simulated/chains/simulated-chains.ts';
import { inUnitOf, unitsOf } from '../../../src/server/unit-of-work.ts';
import { databaseKinds } from '../../support/databases.ts';
import { openOperations, runOnce, runToEnd, type TestOperations } from '../../support/run-operations.ts';

const base = 'eip155:8453';
const usdc = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const eurc = '0x60a3E35Cc302bFA44Cb288Bc5a4F316Fdb1adb42';

describe.each(databaseKinds)('automations on %s', (kind) => {
  let simulated: SimulatedChains;
  let operations: TestOperations;
  let wallet: Wallet;

  beforeEach(async () => {
    simulated = openSimulatedChains({
      file: ':memory:',
      clock: { now: () => operations.clock.nowMs },
      confirmAfterMs: undefined,
    });
    const chains: Chains = { find: (caip2) => simulated.find(caip2), listing: () => simulated.used() };
    operations = await openOperations(kind, { chains });
    wallet = await makeWallet();
  });
  afterEach(async () => {
    await simulated.close();
    await operations[Symbol.asyncDispose]();
  });

  async function makeWallet(): Promise<Wallet> {
    return (await operations.run('createWallet', { body: { chain_type: 'ethereum' } })).body as Wallet;
  }

  /** To USDC on Base, from the assets of the filter. */
  async function makeAutomation(assets: object = { mode: 'all' }): Promise<string> {
    const action = { type: 'swap', destination_chain_asset: { asset: 'usdc', chain: 'base' } };
    const config = { trigger: { type: 'deposit', assets }, action };
    const answer = await operations.run('createWalletAutomation', { body: { owner_id: null, config } });
    return (answer.body as { id: string }).id;
  }

  async function attach(...automation_ids: string[]): Promise<string[]> {
    const path = { wallet_id: wallet.id };
    const { body } = await operations.run('attachWalletAutomations', { path, body: { automation_ids } });
    return (body as { data: { id: string }[] }).data.map(({ id }) => id);
  }

  async function give(tokenAddress: string | null, rawAmount = 5n): Promise<void> {
    await simulated.fund(base, { address: wallet.address, tokenAddress, rawAmount, decimals: 6 });
  }

  const inUnit = () => inUnitOf(unitsOf(operations.database));

  async function detect(): Promise<void> {
    const job = followDeposits({ services: operations.services, inUnit: inUnit() });
    await runToEnd(job);
  }

  async function runDue(served = operations): Promise<void> {
    const units = unitsOf(served.database);
    const openReader = async () => (await units(false)).em;
    const job = runAutomations({ services: served.services, inUnit: inUnitOf(units), openReader });
    await runOnce(job);
  }

  async function executions(): Promise<WalletAutomationExecutionResponse[]> {
    const query = { wallet_id: wallet.id };
    const { body } = await operations.run('listWalletAutomationExecutions', { query });
    return (body as { data: WalletAutomationExecutionResponse[] }).data;
  }

  async function reindex(asset_address: string, more: object = {}) {
    const body = { wallet_id: wallet.id, caip2: base, asset_address, ...more };
    return (await operations.run('reindexWalletAutomation', { body })).body;
  }

  test('each deposit starts one execution of the oldest attachment that matches', async () => {
    await give(eurc);
    await detect();
    const [first] = await attach(await makeAutomation());
    operations.clock.nowMs += 1;
    await attach(await makeAutomation());
    await give(eurc, 7n);
    // What the swap brings stays in the wallet.
    await give(usdc);
    await detect();
    await detect();
    expect(await executions()).toEqual([
      {
        id: expect.any(String),
        automation_attachment_id: first,
        wallet_id: wallet.id,
        wallet_action_id: null,
        status: 'pending',
        trigger_asset_address: eurc,
        trigger_block_number: expect.stringMatching(/^\d+$/),
        trigger_caip2: base,
        trigger_tx_hash: expect.stringMatching(/^0x[0-9a-f]{64}$/),
        created_at: new Date(operations.clock.nowMs).toISOString(),
        updated_at: new Date(operations.clock.nowMs).toISOString(),
        submitted_at: null,
        completed_at: null,
        failed_at: null,
        failure_reason: null,
      },
    ]);
  });

  test.each<[string, object, number]>([
    ['an included asset', { mode: 'include', values: [{ asset: 'eurc', chain: 'base' }] }, 1],
    ['an asset of another chain', { mode: 'include', values: [{ asset: 'usdc', chain: 'ethereum' }] }, 0],
    [
      'an excluded asset',
      { mode: 'exclude', values: [{ asset_address: eurc.toLowerCase(), caip2: base }] },
      0,
    ],
    ['an asset that is not excluded', { mode: 'exclude', values: [{ asset: 'eth', chain: 'base' }] }, 1],
  ])('%s', async (_, assets, count) => {
    await attach(await makeAutomation(assets));
    await give(eurc);
    await detect();
    expect(await executions()).toHaveLength(count);
  });

  test('nothing starts while the automation is disabled, detached or deleted', async () => {
    const automation = await makeAutomation();
    const path = { automation_id: automation };
    await attach(automation);
    await operations.run('updateWalletAutomation', { path, body: { enabled: false } });
    await give(eurc);
    await detect();
    await operations.run('updateWalletAutomation', { path, body: { enabled: true } });
    await operations.run('detachWalletAutomations', {
      path: { wallet_id: wallet.id },
      body: { automation_ids: [automation] },
    });
    await give(eurc);
    await detect();
    await attach(automation);
    await operations.run('deleteWalletAutomation', { path });
    await give(eurc);
    await detect();
    expect(await executions()).toEqual([]);
  });

  test('an execution finishes after its automation is detached, and no longer names the attachment', async () => {
    const automation = await makeAutomation();
    await attach(automation);
    await give(eurc);
    await detect();
    await operations.run('detachWalletAutomations', {
      path: { wallet_id: wallet.id },
      body: { automation_ids: [automation] },
    });
    expect(await executions()).toMatchObject([{ status: 'pending', automation_attachment_id: null }]);
  });

  test('executions of one asset run one after the other', async () => {
    await attach(await makeAutomation());
    await give(eurc);
    await give(eurc);
    await detect();
    // The first claims the asset: the second waits until it has ended.
    await runDue();
    const [second, first] = await executions();
    expect([first?.status, second?.status]).toEqual(['failed', 'pending']);
    await runDue();
    expect((await executions()).map(({ status }) => status)).toEqual(['failed', 'failed']);
  });

  test('several processes run each execution once', async () => {
    const other = kind === 'postgres' ? await operations.anotherProcess() : operations;
    try {
      await attach(await makeAutomation());
      await give(eurc);
      await give(null);
      await detect();
      await Promise.all([runDue(), runDue(other), runDue(), runDue(other)]);
      const ended = await executions();
      expect(ended.map(({ status }) => status)).toEqual(['failed', 'failed']);
    } finally {
      if (other !== operations) await other[Symbol.asyncDispose]();
    }
  });

  test.each<[string, () => Promise<unknown>, string]>([
    [
      'archived',
      () => operations.run('archiveWallet', { path: { wallet_id: wallet.id } }),
      'the wallet was archived after the deposit',
    ],
    [
      'given to an owner',
      async () => {
        const { body } = await operations.run('createKeyQuorum', {
          body: { public_keys: [aliceKey.publicKey] },
        });
        const path = { wallet_id: wallet.id };
        const answer = await operations.run('updateWallet', {
          path,
          body: { owner_id: (body as { id: string }).id },
        });
        expect(answer.status).toBe(200);
      },
      'the owner of the wallet changed after the deposit',
    ],
  ])('nothing moves once the wallet is %s', async (_, change, reason) => {
    await attach(await makeAutomation());
    await give(eurc);
    await detect();
    await change();
    await runDue();
    expect(await executions()).toMatchObject([{ status: 'failed', failure_reason: reason }]);
  });

  test('nothing moves while too many of the users who own the wallet are frozen', async () => {
    const made = async (id: 'createUser' | 'createKeyQuorum' | 'createWallet', body: object) =>
      (await operations.run(id, { body })).body as { id: string };
    const signWith = [aliceKey.privateKey];
    const account = { type: 'email', address: 'frozen@example.com' };
    const user = await made('createUser', { linked_accounts: [account] });
    const members = { public_keys: [aliceKey.publicKey], user_ids: [user.id] };
    const owner = await made('createKeyQuorum', { ...members, authorization_threshold: 1 });
    wallet = (await made('createWallet', { chain_type: 'ethereum', owner_id: owner.id })) as Wallet;
    const path = { wallet_id: wallet.id };
    const automation = await makeAutomation();
    const attached = await operations.run('attachWalletAutomations', {
      ...{ path, body: { automation_ids: [automation] }, signWith },
    });
    expect(attached.status).toBe(200);
    await operations.run('freezeUser', { path: { user_id: user.id } });
    const reasonOfNext = async () => {
      await give(eurc);
      await detect();
      await runDue();
      return (await executions())[0]?.failure_reason;
    };
    const frozen = 'the users who own the wallet are frozen or were deleted';
    // The other member can still sign.
    expect(await reasonOfNext()).not.toBe(frozen);
    const alone = { public_keys: [], user_ids: [user.id] };
    const changed = await operations.run('updateKeyQuorum', {
      ...{ path: { key_quorum_id: owner.id }, body: { ...alone, authorization_threshold: 1 }, signWith },
    });
    expect(changed.status).toBe(200);
    operations.clock.nowMs += 1;
    expect(await reasonOfNext()).toBe(frozen);
    await operations.run('unfreezeUser', { path: { user_id: user.id } });
    operations.clock.nowMs += 1;
    expect(await reasonOfNext()).not.toBe(frozen);
  });

  test('reindexing starts an execution for a balance that has none', async () => {
    expect(await reindex(eurc)).toMatchObject({
      wallet_id: wallet.id,
      results: [{ status: 'skipped_zero_balance', raw_balance: '0', existing_execution_id: null }],
    });
    await give(eurc, 9n);
    await detect();
    expect(await reindex(eurc)).toMatchObject({
      results: [{ status: 'skipped_no_match', raw_balance: '9' }],
    });
    await attach(await makeAutomation());
    const started = {
      wallet_id: wallet.id,
      results: [
        {
          asset_address: eurc,
          caip2: base,
          status: 'submitted',
          raw_balance: '9',
          existing_execution_id: null,
        },
      ],
    };
    expect(await reindex(eurc.toLowerCase())).toEqual(started);
    const [execution] = await executions();
    const existing = { status: 'skipped_existing_execution', existing_execution_id: execution!.id };
    expect(await reindex(eurc)).toMatchObject({ results: [existing] });
    await runDue();
    expect(await reindex(eurc)).toMatchObject({ results: [existing] });
    await give(eurc);
    const body = { deposit_address: wallet.address, chain: 'base', asset_address: eurc };
    expect((await operations.run('reindexWalletAutomation', { body })).body).toMatchObject({
      results: [{ status: 'submitted', raw_balance: '14' }],
    });
    // The deposit is recorded only now, and has its execution already.
    await detect();
    expect(await executions()).toHaveLength(2);
  });

  test('a balance that cannot be read is reported', async () => {
    await attach(await makeAutomation());
    await give(eurc);
    const chain = simulated.find(base)!;
    const broken = { ...chain, balances: () => Promise.reject(new Error('no node')) } as typeof chain;
    const find = operations.services.chains.find;
    Object.assign(operations.services.chains, { find: () => broken });
    expect(await reindex(eurc)).toMatchObject({ results: [{ status: 'failed', raw_balance: null }] });
    // An execution is tried again for ten minutes.
    await detect();
    await runDue();
    expect(await executions()).toMatchObject([{ status: 'pending' }]);
    operations.clock.nowMs += 600_001;
    await runDue();
    expect(await executions()).toMatchObject([
      { status: 'failed', failure_reason: 'the chain or the service that swaps could not be reached' },
    ]);
    Object.assign(operations.services.chains, { find });
  });

  test('reindexing is refused on a chain that is not configured', async () => {
    Object.assign(operations.services.chains, { find: () => undefined });
    const body = { wallet_id: wallet.id, caip2: base, asset_address: eurc };
    expect(await operations.run('reindexWalletAutomation', { body })).toMatchObject({
      status: 400,
      body: { code: 'not_supported', error: 'the chain `base` is not configured here' },
    });
  });

  test.each<[string, object, string]>([
    [
      'both names of the wallet',
      { deposit_address: '0x9858EfFD232B4033E47d90003D41EC34EcaEda94' },
      '/wallet_id:',
    ],
    ['no wallet', { wallet_id: undefined }, '/wallet_id:'],
    ['an unknown wallet', { wallet_id: 'unknown' }, '/wallet_id:'],
    [
      'an unknown address',
      { wallet_id: undefined, deposit_address: '0x9858EfFD232B4033E47d90003D41EC34EcaEda94' },
      '/deposit_address:',
    ],
    ['both names of the chain', { chain: 'base' }, '/caip2:'],
    ['an unknown chain', { caip2: undefined, chain: 'moon' }, '/chain:'],
    ['a chain that the wallet is not on', { caip2: 'tron:mainnet' }, '/caip2:'],
    [
      'an address of another chain',
      { asset_address: 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t' },
      '/asset_address:',
    ],
  ])('reindexing refuses %s', async (_, more, field) => {
    const body = { wallet_id: wallet.id, caip2: base, asset_address: eurc, ...more };
    const answer = await operations.run('reindexWalletAutomation', { body });
    expect(answer.status).toBe(400);
    expect(answer.body).toMatchObject({ code: 'invalid_data', error: expect.stringContaining(field) });
  });
});
