import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { aliceKey } from '../../mocks/authorization-keys.ts';
import { usdcVault } from '../../mocks/earn-vaults.ts';
import type { Wallet } from '../../src/generated/schemas.ts';
import type { AnyChain } from '../../src/ports/chains.ts';
import { call, refusal } from '../support/call.ts';
import { fund } from '../support/fund.ts';
import { asOtherApp } from '../support/other-app.ts';
import { temporaryFolder } from '../support/run-custos.ts';
import { startSandbox, type TestSandbox } from '../support/sandbox.ts';
import { waitSeconds } from '../support/wait-seconds.ts';
import { earnIn, type SetUpVault } from '../support/wallet-actions/earn.ts';
import { transfersIn } from './wallets/transfers-in.ts';

describe('earn', () => {
  const usdc = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
  const token = '0x6f470988d35CD75390B4CA8Aee1a922f1BDbE9E7';
  const year = 31_536_000;

  let sandbox: TestSandbox;
  let admin: Wallet;
  let vault: SetUpVault;
  beforeAll(async () => {
    sandbox = await startSandbox();
    admin = await makeWallet(0n);
    vault = await setUpVault({ provider: 'aave', admin_wallet_id: admin.id, apy_bps: 1000, fee_bps: 2000 });
  });
  afterAll(() => sandbox[Symbol.asyncDispose]());

  const { makeWallet, actionOf, wait, holds, eventsOf } = transfersIn(() => sandbox);
  const { control, start, setUpVault, changeVault, refused, positionOf, vaultOf } = earnIn(() => sandbox);
  const typesOf = async (id: string) => (await eventsOf(id)).map(({ type }) => type);
  const actionNow = (action: { id: string; wallet_id: string }) => actionOf(action as never, 'steps');

  describe('a deposit, a year, and the way back', () => {
    let wallet: Wallet;
    beforeAll(async () => {
      wallet = await makeWallet(100_000_000n);
    });

    test('a deposit approves exactly its amount, and its shares are what the vault minted', async () => {
      const begun = await start('depositEthereumEarn', wallet.id, {
        ...{ vault_id: vault.id, amount: '60.5', reference_id: 'savings' },
      });
      const fields = {
        ...{ type: 'earn_deposit', wallet_id: wallet.id, vault_id: vault.id, vault_address: vault.address },
        ...{
          asset_address: usdc,
          caip2: 'eip155:8453',
          raw_amount: '60500000',
          amount: '60.5',
          asset: 'usdc',
        },
        ...{ decimals: 6, share_amount: null, reference_id: 'savings' },
      };
      expect(begun).toMatchObject({ ...fields, status: 'pending' });
      await wait(10);
      const done = await actionNow(begun);
      expect(done).toMatchObject({ ...fields, status: 'succeeded', share_amount: '60500000' });
      expect(done.steps).toMatchObject([{ type: 'evm_transaction' }, { type: 'evm_transaction' }]);
      expect(await typesOf(begun.id)).toEqual([
        'wallet_action.earn_deposit.created',
        'wallet_action.earn_deposit.succeeded',
      ]);
      expect(await holds(wallet.address, 'base', usdc, vault.address)).toEqual([39_500_000n, 60_500_000n]);
      expect(await positionOf(wallet.id, vault)).toEqual({
        asset: { address: usdc, symbol: 'USDC', decimals: 6 },
        ...{ shares_in_vault: '60500000', assets_in_vault: '60500000', apy_bps: 800 },
        ...{ total_deposited: '60500000', total_withdrawn: '0' },
      });
      expect(await vaultOf(vault)).toEqual({
        ...{ id: vault.id, provider: 'aave', name: 'USDC on base', vault_address: vault.address },
        ...{ caip2: 'eip155:8453', asset: { address: usdc, symbol: 'USDC', decimals: 6 } },
        ...{ admin_wallet_id: admin.id, admin_wallet_address: admin.address },
        ...{ tvl_usd: 60.5, available_liquidity_usd: 60.5, user_apy: 800, app_apy: 200, available_fees: '0' },
      });
    });

    test('a year on the clock earns a year, of which the app collects its part once', async () => {
      await wait(year);
      const position = await positionOf(wallet.id, vault);
      // 60.5 at 8 percent, rounded down for the depositor.
      expect(Number(position.assets_in_vault)).toBeGreaterThanOrEqual(65_339_990);
      expect(Number(position.assets_in_vault)).toBeLessThanOrEqual(65_340_010);
      const fees = Number((await vaultOf(vault)).available_fees);
      expect(Math.abs(fees - 1_210_000)).toBeLessThan(10);

      const body = { vault_id: vault.id };
      const collected = await start('collectEthereumEarnFees', admin.id, body);
      expect(collected).toMatchObject({ type: 'earn_fee_collect', status: 'pending', asset: 'usdc' });
      await wait(10);
      const done = await actionNow(collected);
      expect(done).toMatchObject({ status: 'succeeded', raw_amount: expect.any(String) });
      const raw = (done as unknown as { raw_amount: string }).raw_amount;
      expect(await holds(admin.address, 'base', usdc)).toEqual([BigInt(raw)]);
      expect(await typesOf(collected.id)).toEqual([
        'wallet_action.earn_fee_collect.created',
        'wallet_action.earn_fee_collect.succeeded',
      ]);
    });

    test('a part is withdrawn by its amount, and the whole position by its shares', async () => {
      const part = await start('withdrawEthereumEarn', wallet.id, {
        vault_id: vault.id,
        raw_amount: '1000000',
      });
      await wait(10);
      const done = (await actionNow(part)) as unknown as { share_amount: string; status: string };
      expect(done.status).toBe('succeeded');
      expect(Number(done.share_amount)).toBeLessThan(1_000_000);
      // Without interest the position stands still, so its amount can be named to the unit.
      await changeVault(vault, { apy_bps: 0 });
      const { assets_in_vault: all } = await positionOf(wallet.id, vault);
      const rest = await start('withdrawEthereumEarn', wallet.id, { vault_id: vault.id, raw_amount: all });
      expect(rest).toMatchObject({ type: 'earn_withdraw', status: 'pending', share_amount: null });
      await wait(10);
      expect(await actionNow(rest)).toMatchObject({ status: 'succeeded', raw_amount: all });
      expect(await holds(wallet.address, 'base', vault.address)).toEqual([0n]);
      expect(await positionOf(wallet.id, vault)).toMatchObject({
        ...{ shares_in_vault: '0', assets_in_vault: '0', total_deposited: '60500000' },
        total_withdrawn: String(1_000_000n + BigInt(all)),
      });
      expect(await typesOf(rest.id)).toEqual([
        'wallet_action.earn_withdraw.created',
        'wallet_action.earn_withdraw.succeeded',
      ]);
      await changeVault(vault, { apy_bps: 1000 });
    });
  });

  test('shares with more decimals than the asset count the same money', async () => {
    const morpho = await setUpVault({ provider: 'morpho', admin_wallet_id: admin.id, asset: 'eurc' });
    const wallet = await makeWallet(0n);
    await fund(sandbox, wallet.address, { chain: 'base', asset: 'eurc', rawAmount: 5_000_000n });
    const begun = await start('depositEthereumEarn', wallet.id, { vault_id: morpho.id, amount: '5' });
    await wait(10);
    expect(await actionNow(begun)).toMatchObject({ share_amount: '5000000000000000000' });
    const position = await positionOf(wallet.id, morpho);
    expect(position).toMatchObject({ shares_in_vault: '5000000000000000000', assets_in_vault: '5000000' });
    expect(await vaultOf(morpho)).toMatchObject({ provider: 'morpho', tvl_usd: 5.5, total_rewards_apr: 0 });
  });

  describe('rewards', () => {
    test('rewards are listed, claimed once, and grow again', async () => {
      const wallet = await makeWallet(0n);
      const rewards = async () =>
        (
          await call(sandbox, 'getEthereumEarnIncentiveRewards', {
            path: { wallet_id: wallet.id },
            query: { chain: 'base' },
          })
        ).body.rewards;
      expect(await rewards()).toEqual([]);
      expect(await refused('claimEthereumEarnIncentive', wallet.id, { chain: 'base' })).toEqual({
        ...{ status: 400, code: 'invalid_request', error: 'there is nothing to claim on `base`' },
      });
      const add = (raw_amount: string) =>
        control('POST', 'earn/rewards', {
          ...{ chain: 'base', address: wallet.address, token_address: token, raw_amount },
        });
      expect(await add('2500000000000000000')).toMatchObject({
        status: 200,
        body: { amount_claimed: '0', amount_unclaimed: '2500000000000000000' },
      });
      const entry = { token_address: token, token_symbol: 'RWD', token_decimals: 18 };
      const begun = await start('claimEthereumEarnIncentive', wallet.id, { chain: 'base' });
      expect(begun).toMatchObject({
        type: 'earn_incentive_claim',
        chain: 'base',
        rewards: [{ ...entry, amount: '2500000000000000000' }],
      });
      await wait(10);
      expect(await actionNow(begun)).toMatchObject({
        status: 'succeeded',
        rewards: [{ ...entry, amount: '2500000000000000000' }],
      });
      expect(await holds(wallet.address, 'base', token)).toEqual([2_500_000_000_000_000_000n]);
      expect(await rewards()).toEqual([
        { ...entry, amount_claimed: '2500000000000000000', amount_unclaimed: '0' },
      ]);
      expect((await refused('claimEthereumEarnIncentive', wallet.id, { chain: 'base' })).code).toBe(
        'invalid_request',
      );
      await add('7');
      const [one, other] = [
        await start('claimEthereumEarnIncentive', wallet.id, { chain: 'base' }),
        await start('claimEthereumEarnIncentive', wallet.id, { chain: 'base' }),
      ];
      await wait(10);
      expect(await actionNow(one)).toMatchObject({ rewards: [{ amount: '7' }] });
      // Two claims pay once: the second one finds nothing left.
      expect(await actionNow(other)).toMatchObject({ status: 'succeeded', rewards: [{ amount: '0' }] });
      expect(await holds(wallet.address, 'base', token)).toEqual([2_500_000_000_000_000_007n]);
    });

    test('chains without them are refused', async () => {
      const wallet = await makeWallet(0n);
      for (const chain of ['solana', 'nowhere']) {
        const refusal = await refused('claimEthereumEarnIncentive', wallet.id, { chain });
        expect(refusal).toMatchObject({ status: 400, code: 'not_supported' });
      }
    });
  });

  describe('refusals', () => {
    let wallet: Wallet;
    beforeAll(async () => {
      wallet = await makeWallet(10_000_000n);
    });

    test('amounts that are missing, doubled, zero, too fine or too large name their field', async () => {
      const cases = [
        [{}, 'invalid_data', '/raw_amount'],
        [{ amount: '1', raw_amount: '1' }, 'invalid_data', '/raw_amount'],
        [{ amount: '0' }, 'invalid_data', '/amount'],
        [{ raw_amount: '0' }, 'invalid_data', '/raw_amount'],
        [{ amount: '0.0000001' }, 'invalid_data', '/amount'],
        [{ raw_amount: '9'.repeat(78) }, 'invalid_data', '/raw_amount'],
        [{ amount: '10.000001' }, 'insufficient_funds', ''],
      ] as const;
      for (const [amounts, code, pointer] of cases) {
        const answer = await refused('depositEthereumEarn', wallet.id, { vault_id: vault.id, ...amounts });
        expect(answer).toMatchObject({ status: 400, code });
        expect(answer.error.startsWith(pointer)).toBe(true);
      }
      const taken = await refused('withdrawEthereumEarn', wallet.id, { vault_id: vault.id, raw_amount: '1' });
      expect(taken).toEqual({
        ...{ status: 400, code: 'insufficient_funds', error: 'the position holds 0 base units, got 1' },
      });
    });

    test("another app's vault and other kinds of wallets are refused", async () => {
      const body = { vault_id: vault.id, amount: '1' };
      const other = await asOtherApp(sandbox);
      const path = { vault_id: vault.id };
      expect((await refusal(other, 'getEthereumEarnVault', { path })).status).toBe(404);
      for (const operation of [
        'depositEthereumEarn',
        'withdrawEthereumEarn',
        'collectEthereumEarnFees',
      ] as const) {
        const { amount, ...named } = body;
        const request = operation === 'collectEthereumEarnFees' ? named : { ...named, amount };
        const absent = await refused(operation, wallet.id, { ...request, vault_id: 'nosuchvault' });
        expect(absent).toMatchObject({ status: 400, code: 'invalid_data' });
        expect(absent.error).toMatch(/^\/vault_id: /);
        const { body: solana } = await call(sandbox, 'createWallet', { body: { chain_type: 'solana' } });
        expect(await refused(operation, solana.id, request)).toMatchObject({ code: 'not_supported' });
        expect(await refused(operation, 'nosuchwallet', request)).toMatchObject({ status: 404 });
      }
    });

    test('a paused vault, one that has lent everything, and a wallet without gas', async () => {
      const deposit = (walletId: string) =>
        start('depositEthereumEarn', walletId, { vault_id: vault.id, amount: '2' });
      await deposit(wallet.id);
      await wait(10);
      expect((await changeVault(vault, { raw_liquidity: '500000' })).status).toBe(200);
      const withdraw = { vault_id: vault.id, amount: '1' };
      expect(await refused('withdrawEthereumEarn', wallet.id, withdraw)).toMatchObject({
        ...{ code: 'insufficient_funds', error: 'the vault can pay out 500000 base units now, got 1000000' },
      });
      const excess = await changeVault(vault, { raw_liquidity: '999999999999' });
      expect(excess).toMatchObject({ status: 400, body: { code: 'invalid_data' } });
      await changeVault(vault, { paused: true });
      const paused = await refused('depositEthereumEarn', wallet.id, withdraw);
      expect(paused).toMatchObject({ code: 'invalid_data' });
      expect(paused.error).toContain('the vault takes at most 0 base units');
      await changeVault(vault, { paused: false, raw_liquidity: '2000000' });
      const { body: gasless } = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
      await fund(sandbox, gasless.address, { chain: 'base', asset: 'usdc', rawAmount: 10_000_000n });
      const poor = await refused('depositEthereumEarn', gasless.id, withdraw);
      expect(poor).toMatchObject({ code: 'insufficient_funds' });
    });

    test('fees are collected from vaults that keep them, by their admin, when there are some', async () => {
      const fees = (walletId: string, vaultId: string) =>
        refused('collectEthereumEarnFees', walletId, { vault_id: vaultId });
      expect(await fees(wallet.id, vault.id)).toMatchObject({ code: 'invalid_data' });
      const fresh = await setUpVault({ provider: 'aave', admin_wallet_id: admin.id, name: 'Fresh' });
      expect(await fees(admin.id, fresh.id)).toMatchObject({ code: 'invalid_request' });
      const veda = await setUpVault({ provider: 'veda', admin_wallet_id: admin.id, name: 'Other' });
      expect(await fees(admin.id, veda.id)).toMatchObject({ code: 'not_supported' });
    });

    test('a nonce counts once, and only the owner moves money', async () => {
      const owned = await makeWallet(5_000_000n, { owner: { public_key: aliceKey.publicKey } });
      const body = { vault_id: vault.id, amount: '1', nonce: 'treasury-2026-01-01-000001' };
      expect(await refused('depositEthereumEarn', owned.id, body)).toMatchObject({ status: 401 });
      const signWith = [aliceKey.privateKey];
      const begun = await start('depositEthereumEarn', owned.id, body, { signWith });
      expect(begun.status).toBe('pending');
      const again = await refused('depositEthereumEarn', owned.id, body, { signWith });
      expect(again).toMatchObject({ status: 409, code: 'resource_conflict' });
    });

    test('policies see the amount in both spellings', async () => {
      const condition = (field: string, operator: string, value: string) => ({
        ...{ field_source: 'action_request_body', field, operator, value },
      });
      const limit = (field: string, value: string) => ({
        ...{ name: 'Small', method: 'earn_deposit', action: 'ALLOW' },
        conditions: [condition('vault_id', 'eq', vault.id), condition(field, 'lte', value)],
      });
      for (const [field, most] of [
        ['amount', '1.5'],
        ['raw_amount', '1500000'],
      ] as const) {
        const { body: policy } = await call(sandbox, 'createPolicy', {
          body: {
            version: '1.0',
            name: 'Small',
            chain_type: 'ethereum',
            rules: [limit(field, most)] as never,
          },
        });
        const limited = await makeWallet(9_000_000n, { policy_ids: [policy.id] });
        for (const amounts of [{ amount: '1.500001' }, { raw_amount: '1500001' }]) {
          const answer = await refused('depositEthereumEarn', limited.id, { vault_id: vault.id, ...amounts });
          expect(answer).toMatchObject({ status: 400, code: 'policy_violation' });
        }
        for (const amounts of [{ amount: '1.50' }, { raw_amount: '1500000' }]) {
          const begun = await start('depositEthereumEarn', limited.id, { vault_id: vault.id, ...amounts });
          expect(begun.status).toBe('pending');
        }
        for (const operation of ['withdrawEthereumEarn', 'claimEthereumEarnIncentive'] as const) {
          const body =
            operation === 'withdrawEthereumEarn' ? { vault_id: vault.id, amount: '1' } : { chain: 'base' };
          const answer = await refused(operation, limited.id, body);
          expect(answer).toMatchObject({ code: 'policy_violation' });
        }
      }
    });
  });

  describe('what happens after the response', () => {
    const end = 700;

    test('a vault that is paused before the block makes the action fail, and the failure names the allowance that is left', async () => {
      const wallet = await makeWallet(5_000_000n);
      await start('depositEthereumEarn', wallet.id, { vault_id: vault.id, amount: '1' });
      await wait(10);
      const deposit = await start('depositEthereumEarn', wallet.id, { vault_id: vault.id, amount: '2' });
      const other = await makeWallet(1_000_000n);
      await start('depositEthereumEarn', other.id, { vault_id: vault.id, amount: '1' });
      await wait(10);
      const withdrawal = await start('withdrawEthereumEarn', other.id, { vault_id: vault.id, amount: '0.5' });
      const late = await start('depositEthereumEarn', wallet.id, { vault_id: vault.id, amount: '1.5' });
      await sandbox.chains.earn.changeVault('eip155:8453', vault.address, { isPaused: true });
      await wait(end);
      expect(await actionNow(deposit)).toMatchObject({ status: 'succeeded' });
      const failed = await actionNow(late);
      expect(failed).toMatchObject({
        ...{ status: 'failed', share_amount: null },
        failure_reason: {
          message: expect.any(String),
          details: { allowance: { asset_address: usdc, spender: vault.address, raw_amount: '1500000' } },
        },
      });
      expect((await actionNow(withdrawal)).status).toBe('failed');
      expect(await typesOf(late.id)).toEqual([
        'wallet_action.earn_deposit.created',
        'wallet_action.earn_deposit.failed',
      ]);
      expect((await typesOf(withdrawal.id)).at(-1)).toBe('wallet_action.earn_withdraw.failed');
      await changeVault(vault, { paused: false });
      expect(await holds(wallet.address, 'base', usdc)).toEqual([2_000_000n]);
    });

    test('a claim whose proof is outdated fails, and so does the second of two collections', async () => {
      const wallet = await makeWallet(0n);
      const reward = (address: string) => ({
        ...{ address, tokenAddress: token, rawAmount: 5n, decimals: 18, symbol: 'RWD' },
      });
      await sandbox.chains.earn.addReward('eip155:8453', reward(wallet.address));
      const claim = await start('claimEthereumEarnIncentive', wallet.id, { chain: 'base' });
      await sandbox.chains.earn.addReward('eip155:8453', reward(admin.address));
      const body = { vault_id: vault.id };
      const fees = [await start('collectEthereumEarnFees', admin.id, body)];
      fees.push(await start('collectEthereumEarnFees', admin.id, body));
      await wait(end);
      expect((await actionNow(claim)).status).toBe('failed');
      expect((await typesOf(claim.id)).at(-1)).toBe('wallet_action.earn_incentive_claim.failed');
      expect((await actionNow(fees[0]!)).status).toBe('succeeded');
      expect((await typesOf(fees[1]!.id)).at(-1)).toBe('wallet_action.earn_fee_collect.failed');
    });

    test('without gas for the block nothing happens, and the action is rejected', async () => {
      const wallet = await makeWallet(5_000_000n);
      const own = await setUpVault({ provider: 'aave', admin_wallet_id: wallet.id, apy_bps: 5000 });
      await start('depositEthereumEarn', wallet.id, { vault_id: own.id, amount: '2' });
      await wait(year);
      await control('POST', 'earn/rewards', {
        ...{ chain: 'base', address: wallet.address, token_address: token, raw_amount: '5' },
      });
      const [held = 0n] = (await holds(wallet.address, 'base', null)) ?? [];
      // The transfer leaves too little for what follows it in the same block.
      await call(sandbox, 'transferFromWallet', {
        path: { wallet_id: wallet.id },
        body: {
          source: {
            asset: 'eth',
            chain: 'base',
            amount: `0.${String(held - 3n * 10n ** 12n).padStart(18, '0')}`,
          },
          destination: { address: admin.address },
        },
      });
      const actions = [
        await start('depositEthereumEarn', wallet.id, { vault_id: own.id, amount: '1' }),
        await start('withdrawEthereumEarn', wallet.id, { vault_id: own.id, amount: '1' }),
        await start('claimEthereumEarnIncentive', wallet.id, { chain: 'base' }),
        await start('collectEthereumEarnFees', wallet.id, { vault_id: own.id }),
      ];
      await wait(end);
      for (const action of actions) {
        expect(await actionNow(action)).toMatchObject({
          ...{ status: 'rejected', failure_reason: { message: expect.any(String) } },
        });
        expect((await typesOf(action.id)).at(-1)).toBe(`wallet_action.${action.type}.rejected`);
      }
      expect(await holds(wallet.address, 'base', usdc)).toEqual([3_000_000n]);
    });
  });

  test('the books add up: what was given out and minted is what all hold together', async () => {
    const { body } = await control('GET', 'books');
    const books = (body as { data: { given: string; minted: string; held: Record<string, string> }[] }).data;
    expect(books.length).toBeGreaterThan(4);
    for (const { given, minted, held } of books) {
      const sum = Object.values(held).reduce((total, amount) => total + BigInt(amount), 0n);
      expect(sum).toBe(BigInt(given) + BigInt(minted));
    }
    const holders = new Set(books.flatMap(({ held }) => Object.keys(held)));
    expect([...holders].sort()).toEqual(['accounts', 'borrowers', 'fees', 'pools', 'rewards', 'vaults']);
  });
});

describe('refusals of earn', () => {
  const base = 'eip155:8453';
  const token = '0x6f470988d35CD75390B4CA8Aee1a922f1BDbE9E7';
  const executionFailed = { status: 400, code: 'transaction_execution_failure' };
  const poor = { status: 400, code: 'insufficient_funds' };
  const used = { status: 409, code: 'resource_conflict', error: '/nonce: the wallet has seen this nonce' };

  let sandbox: TestSandbox;
  let wallet: Wallet;
  let vault: SetUpVault;
  beforeAll(async () => {
    sandbox = await startSandbox();
    wallet = await makeWallet(10_000_000n);
    vault = await setUpVault({
      provider: 'aave',
      admin_wallet_id: wallet.id,
      apy_bps: 10_000,
      fee_bps: 5000,
    });
    await start('depositEthereumEarn', wallet.id, { vault_id: vault.id, amount: '4' });
    await wait(31_536_000);
  });
  afterAll(() => sandbox[Symbol.asyncDispose]());

  const { makeWallet, wait } = transfersIn(() => sandbox);
  const { start, setUpVault, changeVault, refused } = earnIn(() => sandbox);

  const reward = (address: string) =>
    sandbox.chains.earn.addReward(base, {
      ...{ address, tokenAddress: token, rawAmount: 5n, decimals: 18, symbol: 'RWD' },
    });

  /** Runs `work` while a service of the server is another one. */
  async function having(
    services: Partial<TestSandbox['services']>,
    work: () => Promise<void>,
  ): Promise<void> {
    const before = Object.fromEntries(
      Object.keys(services).map((name) => [name, sandbox.services[name as keyof typeof services]]),
    );
    Object.assign(sandbox.services, services);
    try {
      await work();
    } finally {
      Object.assign(sandbox.services, before);
    }
  }

  test('a vault that is paused after it was asked, and before the simulation, refuses what was planned', async () => {
    const pausing = (chain: AnyChain | undefined) =>
      chain?.kind !== 'evm'
        ? chain
        : {
            ...chain,
            async simulate(calls: Parameters<typeof chain.simulate>[0]) {
              await sandbox.chains.earn.changeVault(base, vault.address, { isPaused: true });
              return chain.simulate(calls);
            },
          };
    const { chains } = sandbox.services;
    await having({ chains: { ...chains, find: (caip2) => pausing(chains.find(caip2)) } }, async () => {
      for (const operation of ['depositEthereumEarn', 'withdrawEthereumEarn'] as const) {
        await changeVault(vault, { paused: false });
        const answer = await refused(operation, wallet.id, { vault_id: vault.id, amount: '1' });
        expect(answer).toMatchObject(executionFailed);
        expect(answer.error).toMatch(/ERC4626ExceededMax(Deposit|Withdraw)/);
      }
    });
    await changeVault(vault, { paused: false });
  });

  test('fees that the vault has lent cannot be collected', async () => {
    await changeVault(vault, { raw_liquidity: '0' });
    const answer = await refused('collectEthereumEarnFees', wallet.id, { vault_id: vault.id });
    expect(answer).toMatchObject(executionFailed);
    await changeVault(vault, { raw_liquidity: '5000000' });
  });

  test('a reward whose proof is outdated cannot be claimed, and an unreachable program pays none', async () => {
    await reward(wallet.address);
    const { incentives } = sandbox.services;
    const outdated = await incentives?.rewards(base, wallet.address);
    await reward('0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0');
    await having({ incentives: { rewards: async () => outdated } }, async () => {
      const answer = await refused('claimEthereumEarnIncentive', wallet.id, { chain: 'base' });
      expect(answer).toMatchObject({ ...executionFailed, error: expect.stringContaining('InvalidProof') });
    });
    const down = () => Promise.reject(new Error('connect ECONNREFUSED'));
    await having({ incentives: { rewards: down } }, async () => {
      const answer = await refused('claimEthereumEarnIncentive', wallet.id, { chain: 'base' });
      expect(answer).toMatchObject({ status: 400, code: 'transaction_broadcast_failure' });
    });
  });

  test('a wallet that cannot pay the gas claims and collects nothing', async () => {
    const { body: gasless } = await call(sandbox, 'createWallet', { body: { chain_type: 'ethereum' } });
    await reward(gasless.address);
    expect(await refused('claimEthereumEarnIncentive', gasless.id, { chain: 'base' })).toMatchObject(poor);
    const own = await setUpVault({ provider: 'aave', admin_wallet_id: gasless.id, apy_bps: 5000 });
    await start('depositEthereumEarn', wallet.id, { vault_id: own.id, amount: '1' });
    await wait(1_000_000);
    const body = { vault_id: own.id };
    expect(await refused('collectEthereumEarnFees', gasless.id, body)).toMatchObject(poor);
  });

  test('fees are collected under a policy only by a rule for every method', async () => {
    const rule = {
      ...{ name: 'Deposits', method: 'earn_deposit', action: 'ALLOW' },
      conditions: [
        { field_source: 'action_request_body', field: 'vault_id', operator: 'eq', value: vault.id },
      ],
    };
    const policyOf = async (...rules: object[]) => {
      const body = { version: '1.0', name: 'Fees', chain_type: 'ethereum', rules: rules as never } as const;
      return [(await call(sandbox, 'createPolicy', { body })).body.id];
    };
    const admin = await makeWallet(0n, { policy_ids: await policyOf(rule) });
    const own = await setUpVault({ provider: 'aave', admin_wallet_id: admin.id, apy_bps: 5000 });
    await start('depositEthereumEarn', wallet.id, { vault_id: own.id, amount: '1' });
    await wait(1_000_000);
    const collect = { vault_id: own.id };
    expect(await refused('collectEthereumEarnFees', admin.id, collect)).toMatchObject({
      ...{ status: 400, code: 'policy_violation' },
    });
    const every = { ...rule, method: '*', conditions: [{ ...rule.conditions[0], value: own.id }] };
    await call(sandbox, 'updateWallet', {
      path: { wallet_id: admin.id },
      body: { policy_ids: await policyOf(every) },
    });
    expect((await start('collectEthereumEarnFees', admin.id, collect)).status).toBe('pending');
  });

  test('each of the actions takes a nonce once', async () => {
    await reward(wallet.address);
    const actions = [
      ['withdrawEthereumEarn', { vault_id: vault.id, amount: '0.5' }],
      ['claimEthereumEarnIncentive', { chain: 'base' }],
      ['collectEthereumEarnFees', { vault_id: vault.id }],
    ] as const;
    for (const [operation, body] of actions) {
      const once = { ...body, nonce: `${operation}-2026-01-01` };
      expect((await start(operation, wallet.id, once)).status).toBe('pending');
      expect(await refused(operation, wallet.id, once)).toEqual(used);
    }
  });

  test('a vault on a chain that is no longer configured cannot be read', async () => {
    const { chains } = sandbox.services;
    const without = { ...chains, find: (caip2: string) => (caip2 === base ? undefined : chains.find(caip2)) };
    await having({ chains: without }, async () => {
      const unsupported = { status: 400, body: { code: 'not_supported' } };
      const query = { vault_id: vault.id };
      expect(await refusal(sandbox, 'getEthereumEarnVault', { path: query })).toMatchObject(unsupported);
      const position = { path: { wallet_id: wallet.id }, query };
      expect(await refusal(sandbox, 'getEthereumEarnPosition', position)).toMatchObject(unsupported);
    });
  });
});

describe('the seeded vault', () => {
  const path = { wallet_id: 'ext_wal_acme-ethereum' };
  const query = { vault_id: usdcVault.id };
  const vaultOf = async (sandbox: TestSandbox) =>
    (await call(sandbox, 'getEthereumEarnVault', { path: query })).body;
  const positionOf = async (sandbox: TestSandbox) =>
    (await call(sandbox, 'getEthereumEarnPosition', { path, query })).body;

  test('the vault of the seed data takes deposits at once, and outlives restarts and resets', async () => {
    const dataFolder = temporaryFolder();
    const first = await startSandbox({ dataFolder });
    const { id, address } = (await call(first, 'getWallet', { path })).body;
    expect(await vaultOf(first)).toMatchObject({
      ...{ id: usdcVault.id, provider: 'aave', name: 'USDC prime', vault_address: usdcVault.address },
      ...{ admin_wallet_id: id, admin_wallet_address: address, user_apy: 450, app_apy: 50, tvl_usd: 0 },
    });
    await fund(first, address, { chain: 'base', asset: 'eth', rawAmount: 10n ** 18n });
    await fund(first, address, { chain: 'base', asset: 'usdc', rawAmount: 50_000_000n });
    await call(first, 'depositEthereumEarn', { path, body: { ...query, amount: '20' } });
    await waitSeconds(first, 10);
    const deposited = { assets_in_vault: '20000000', total_deposited: '20000000' };
    expect(await positionOf(first)).toMatchObject(deposited);
    await first[Symbol.asyncDispose]();

    await using second = await startSandbox({ dataFolder });
    expect(await positionOf(second)).toMatchObject({ total_deposited: '20000000' });
    expect(await vaultOf(second)).toMatchObject({ tvl_usd: 20 });
    await second.reset();
    expect(await positionOf(second)).toMatchObject({ assets_in_vault: '0', total_deposited: '0' });
    const renewed = (await call(second, 'getWallet', { path })).body;
    expect(await vaultOf(second)).toMatchObject({ tvl_usd: 0, admin_wallet_address: renewed.address });
  });
});
