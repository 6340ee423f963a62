import { generateKeyPairSync } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { aliceKey, bobKey } from '../../../mocks/authorization-keys.ts';
import { routersOnChain } from '../../../src/adapters/swap-routers.ts';
import type {
  CreateCryptoDepositAccountResponse,
  CryptoDepositAddressRoute,
  GetCryptoDepositAccountNextOrderResponse,
  GetCryptoDepositAccountOrderResponse,
  ListCryptoDepositAccountsResponse,
  SwapActionResponse,
  TransferActionResponse,
  Wallet,
} from '../../../src/generated/schemas.ts';
import type { EvmChain } from '../../../src/ports/chains.ts';
import {
  openSimulatedChains,
  type SimulatedChains,
} from '../../../src/sandbox/simulated/chains/simulated-chains.ts';
import { fixedPrices } from '../../../src/sandbox/simulated/prices.ts';
import { databaseKinds } from '../../support/databases.ts';
import { openOperations, type TestOperations } from '../../support/run-operations.ts';
import { automated } from './automated.ts';

const base = 'eip155:8453';
const arbitrum = 'eip155:42161';
const router = '0x7a250d5630B4cF539739dF2C5dAcb4c659F2488D';
const usdc = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const eurc = '0x60a3E35Cc302bFA44Cb288Bc5a4F316Fdb1adb42';
const usdcOnArbitrum = '0xaf88d065e77c8cC2239327C5EDb3A432268e5831';
const usdcOnSolana = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v';
const solana = 'solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp';
const ether = 10n ** 18n;
const owner = { public_key: aliceKey.publicKey };
const signWith = [aliceKey.privateKey];
const toUsdc = { asset: 'usdc', chain: 'base' };
const ethOnArbitrum = { mode: 'include', values: [{ asset: 'eth', chain: 'arbitrum' }] };

describe.each(databaseKinds)('crypto deposit accounts on %s', (kind) => {
  let operations: TestOperations;
  let simulated: SimulatedChains;
  let wallet: Wallet;
  const { run, detect, runDue, settle, events, executionsOf, actionsOf } = automated(() => operations);

  beforeEach(async () => {
    simulated = openSimulatedChains({
      ...{ file: ':memory:', clock: { now: () => operations.clock.nowMs }, confirmAfterMs: undefined },
      knownTokens: () => [
        { caip2: base, address: usdc, symbol: 'USDC', decimals: 6 },
        { caip2: base, address: eurc, symbol: 'EURC', decimals: 6 },
      ],
    });
    const find = (id: string) => simulated.find(id);
    operations = await openOperations(kind, { chains: { find, listing: () => simulated.used() } });
    const { services } = operations;
    const { chains, clock, ids } = services;
    Object.assign(services, {
      prices: fixedPrices,
      swapRoutes: routersOnChain({ chains, clock, routerOf: (id) => (id === base ? router : undefined) }),
      exchange: simulated.exchange({ ids, prices: fixedPrices, supports: (id) => simulated.has(id) }),
    });
    wallet = await makeWallet({ owner });
    // Chains report what comes after they were first asked.
    for (const caip2 of [base, arbitrum]) await give(caip2, null, { address: `0x${'1'.repeat(40)}` }, 1n);
    await detect();
  });
  afterEach(async () => {
    await operations[Symbol.asyncDispose]();
    await simulated.close();
  });

  const makeWallet = (body: object) =>
    run<Wallet>('createWallet', { body: { chain_type: 'ethereum', ...body } });
  const give = (
    caip2: string,
    tokenAddress: string | null,
    { address }: { address: string },
    rawAmount: bigint,
  ) =>
    simulated.fund(caip2, {
      ...{ address, tokenAddress, rawAmount },
      ...(tokenAddress === null ? {} : { decimals: 6, symbol: 'TOKEN' }),
    });
  const held = async (caip2: string, token: string | null, { address }: { address: string }) =>
    (await simulated.find(caip2)!.balances(address, [token]))[0]!;
  const inputOf = (more: object, to = wallet) => ({
    path: { wallet_id: to.id },
    body: { type: 'inline_route', source: ethOnArbitrum, destination: toUsdc, ...more },
    signWith,
  });
  const open = async (more: object = {}, to = wallet): Promise<CryptoDepositAddressRoute> => {
    const { deposit_accounts: accounts } = await run<CreateCryptoDepositAccountResponse>(
      'createCryptoDepositAccount',
      inputOf(more, to),
    );
    return accounts[0]!;
  };
  const addressOf = ({ deposit_address: address }: CryptoDepositAddressRoute) => ({ address });
  const listed = async (to = wallet) =>
    (
      await run<ListCryptoDepositAccountsResponse>('listCryptoDepositAccounts', {
        path: { wallet_id: to.id },
      })
    ).data;
  const orderOf = async (walletId: string, order_id: string) =>
    run<GetCryptoDepositAccountOrderResponse>('getCryptoDepositOrder', {
      path: { wallet_id: walletId, order_id },
    });
  const nextOrder = async (after: string | number, walletId = wallet.id) =>
    (
      await run<GetCryptoDepositAccountNextOrderResponse>('getNextCryptoDepositOrder', {
        path: { wallet_id: walletId },
        query: { after: typeof after === 'number' ? new Date(after).toISOString() : after },
      })
    ).order;
  const withoutBundlers = () => {
    const { find } = operations.services.chains;
    const without = (id: string) => {
      const { bundler: _, ...chain } = find(id) as EvmChain;
      return chain as EvmChain;
    };
    Object.assign(operations.services.chains, { find: without });
  };

  test('what is deposited on one chain arrives as another asset on another, without a signature or gas', async () => {
    const account = await open();
    const at = await run<Wallet>('getWallet', { path: { wallet_id: account.wallet_id } });
    expect(at.id).not.toBe(wallet.id);
    expect(at).toMatchObject({ address: account.deposit_address, owner_id: wallet.owner_id });
    expect(account).toMatchObject({ source: ethOnArbitrum, destination: toUsdc });
    const before = operations.clock.nowMs - 1;
    expect(await nextOrder(before)).toBeNull();
    await give(arbitrum, null, at, ether / 10n);
    await detect();
    const order = (await nextOrder(before))!;
    expect(order.status).toBe('pending');
    await runDue();
    expect(await orderOf(wallet.id, order.id)).toEqual({ id: order.id, status: 'pending' });
    await settle();
    expect(await orderOf(wallet.id, order.id)).toEqual({ id: order.id, status: 'succeeded' });
    expect(await orderOf(at.id, order.id)).toEqual({ id: order.id, status: 'succeeded' });
    expect(await held(arbitrum, null, at)).toBe(0n);
    const [swap] = await actionsOf<SwapActionResponse>(at.id);
    // A tenth of an ether for 3,000 dollars each, less the fee of the exchange.
    expect(await held(base, usdc, wallet)).toBe(BigInt(swap!.output_amount!));
    expect(Number(swap!.output_amount)).toBeGreaterThan(298_000_000);
    const reported = (await events()).filter(
      ({ wallet_id: id, type }) => id === at.id && /^wallet(_|\.funds_deposited)/.test(String(type)),
    );
    expect(reported.map(({ type }) => type)).toEqual([
      'wallet.funds_deposited',
      'wallet_action.swap.created',
      'wallet_automation.submitted',
      'wallet_action.swap.succeeded',
    ]);
    expect(reported[2]).toMatchObject({ trigger_id: order.id, trigger_asset_address: 'native' });
  });

  test('orders follow each other; a deposit that an earlier order has swept has the status of that order', async () => {
    const account = await open({ source: { mode: 'all' } });
    const start = operations.clock.nowMs;
    await give(base, eurc, addressOf(account), 5_000_000n);
    await give(base, eurc, addressOf(account), 7_000_000n);
    operations.clock.nowMs += 1000;
    await detect();
    const first = (await nextOrder(start))!;
    await settle();
    const [one, two] = await executionsOf(account.wallet_id);
    expect([one!.id, one!.status, two!.status]).toEqual([first.id, 'completed', 'skipped']);
    expect((await orderOf(wallet.id, two!.id)).status).toBe('succeeded');
    // Later than the first, which started in the same millisecond as the second.
    expect(await nextOrder(start + 1000)).toBeNull();
    operations.clock.nowMs += 1000;
    const between = operations.clock.nowMs;
    operations.clock.nowMs += 1000;
    await give(base, eurc, addressOf(account), 1_000_000n);
    await detect();
    const third = (await nextOrder(between))!;
    expect(third.status).toBe('pending');
    // A client an hour behind sees the first order, one ahead sees none, and the time of a quote is the server's.
    expect((await nextOrder(between - 3_600_000))!.id).toBe(first.id);
    expect(await nextOrder(between + 3_600_000)).toBeNull();
    const body = { source: { asset: 'eurc', chain: 'base' }, destination: toUsdc };
    const quote = await run<{ created_at: string }>('quoteCryptoDeposit', { body });
    expect(await nextOrder(quote.created_at)).toBeNull();
    // Two hours ahead of UTC, and the same instant.
    const zoned = new Date(between + 7_200_000).toISOString().replace('Z', '+02:00');
    expect((await nextOrder(zoned))!.id).toBe(third.id);
    // Spent by the owner before it was converted.
    const spend = {
      source: { asset: 'eurc', chain: 'base', amount: '1' },
      destination: { address: wallet.address },
    };
    await give(base, null, addressOf(account), ether);
    const path = { wallet_id: account.wallet_id };
    await run('transferFromWallet', { path, body: spend, signWith });
    await settle();
    const spent = (await executionsOf(account.wallet_id)).find(({ id }) => id === third.id)!;
    expect([spent.status, (await orderOf(wallet.id, third.id)).status]).toEqual(['skipped', 'rejected']);
  });

  test('what is the destination asset already is forwarded', async () => {
    const account = await open({ source: { mode: 'all' } });
    await give(base, usdc, addressOf(account), 2_500_000n);
    await settle();
    expect(await executionsOf(account.wallet_id)).toMatchObject([{ status: 'completed' }]);
    const [transfer] = await actionsOf<TransferActionResponse>(account.wallet_id);
    expect(transfer).toMatchObject({ type: 'transfer', status: 'succeeded', source_amount: '2.5' });
    expect(await held(base, usdc, wallet)).toBe(2_500_000n);
    const toEth = await open({ source: { mode: 'all' }, destination: { asset: 'eth', chain: 'base' } });
    await give(base, null, addressOf(toEth), ether);
    await settle();
    expect(await held(base, null, wallet)).toBe(ether);
  });

  test('a route has one address in every spelling, also at the same time; another route has another', async () => {
    const spellings = [
      { source: { mode: 'include', values: [{ asset: 'ETH', chain: arbitrum }] } },
      { source: { mode: 'include', values: [{ asset: `0x${'0'.repeat(40)}`, chain: 'arbitrum' }] } },
      { destination: { asset: usdc.toLowerCase(), chain: base } },
      { source: { mode: 'include', values: [...ethOnArbitrum.values, ...ethOnArbitrum.values] } },
    ];
    const [first, ...others] = await Promise.all([{}, ...spellings].map((more) => open(more)));
    expect(new Set([first, ...others].map((each) => each!.deposit_address)).size).toBe(1);
    expect(await open({ deposit_address_strategy: 'dedicated' })).toEqual(await open());
    operations.clock.nowMs += 1;
    const anywhere = await open({ source: { mode: 'include', values: [{ asset: 'eth' }] } });
    expect(anywhere.deposit_address).not.toBe(first!.deposit_address);
    expect(anywhere.source).toEqual({ mode: 'include', values: [{ asset: 'eth' }] });
    expect((await listed()).map(({ deposit_address: address }) => address)).toEqual([
      anywhere.deposit_address,
      first!.deposit_address,
    ]);
    const path = { wallet_id: wallet.id };
    const page = (query: object) =>
      run<ListCryptoDepositAccountsResponse>('listCryptoDepositAccounts', {
        path,
        query: query as Record<string, unknown>,
      });
    const { data, next_cursor: cursor } = await page({ limit: 1 });
    expect(data).toEqual([anywhere]);
    expect((await page({ limit: 1, cursor })).data).toHaveLength(1);
    expect((await page({ limit: 1, cursor })).next_cursor).toBeNull();
    expect(await operations.run('listCryptoDepositAccounts', { path, query: { cursor: 'x' } })).toMatchObject(
      { status: 400, body: { code: 'invalid_data' } },
    );
  });

  test('the automations underneath are hidden and cannot be taken off', async () => {
    const account = await open({ source: { mode: 'all' }, deposit_address_strategy: 'require_destination' });
    expect([account.wallet_id, account.deposit_address]).toEqual([wallet.id, wallet.address]);
    await give(base, eurc, wallet, 1_000_000n);
    await detect();
    const [submitted] = await Promise.all([
      settle().then(async () => (await events()).find(({ type }) => type === 'wallet_automation.submitted')),
    ]);
    const id = submitted!.automation_id as string;
    expect(await run('listWalletAutomations', {})).toEqual({ data: [], next_cursor: null });
    const query = { wallet_id: wallet.id };
    expect(await run('listWalletAutomations', { query })).toEqual({ data: [], next_cursor: null });
    const path = { automation_id: id };
    expect((await operations.run('getWalletAutomation', { path })).status).toBe(404);
    expect((await operations.run('deleteWalletAutomation', { path })).status).toBe(404);
    const change = { path, body: { enabled: false } };
    expect((await operations.run('updateWalletAutomation', change)).status).toBe(404);
    const attachment = { path: { wallet_id: wallet.id }, body: { automation_ids: [id] }, signWith };
    expect((await operations.run('attachWalletAutomations', attachment)).status).toBe(400);
    await run('detachWalletAutomations', attachment);
    expect(await listed()).toEqual([account]);
    const shown = await run<Wallet>('getWallet', { path: { wallet_id: wallet.id } });
    expect(shown.automations).toBeUndefined();
  });

  test('at its own address a wallet converts each asset one way, and keeps the destination asset', async () => {
    const own = { deposit_address_strategy: 'prefer_destination' };
    const values = [
      { asset: 'eurc', chain: 'base' },
      { asset: 'usdc', chain: 'base' },
    ];
    const account = await open({ source: { mode: 'include', values }, ...own });
    expect(account.deposit_address).toBe(wallet.address);
    await give(base, eurc, wallet, 1_000_000n);
    await give(base, usdc, wallet, 3_000_000n);
    await settle();
    expect((await executionsOf(wallet.id)).map(({ status }) => status)).toEqual(['completed']);
    expect(await held(base, eurc, wallet)).toBe(0n);
    expect(await held(base, usdc, wallet)).toBeGreaterThan(3_900_000n);
    const toEth = { destination: { asset: 'eth', chain: 'base' }, ...own };
    for (const source of [
      { mode: 'all' },
      { mode: 'exclude', values: [{ asset: 'eth', chain: 'base' }] },
      { mode: 'include', values: [{ asset: 'eurc', chain: 'base' }] },
    ]) {
      expect(await operations.run('createCryptoDepositAccount', inputOf({ source, ...toEth }))).toMatchObject(
        { status: 409, body: { code: 'resource_conflict' } },
      );
    }
    await open({ source: { mode: 'include', values: [{ asset: 'usdc', chain: 'arbitrum' }] }, ...toEth });
    expect(await listed()).toHaveLength(2);
  });

  test('a wallet that was exported is not its own address, but may have others', async () => {
    const account = await open({ source: { mode: 'all' } });
    const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const recipient = publicKey.export({ format: 'der', type: 'spki' }).toString('base64');
    const exporting = { encryption_type: 'HPKE', recipient_public_key: recipient };
    await run('exportWallet', { path: { wallet_id: wallet.id }, body: exporting, signWith });
    expect(await listed()).toEqual([account]);
    const own = inputOf({ deposit_address_strategy: 'require_destination' });
    expect(await operations.run('createCryptoDepositAccount', own)).toMatchObject({
      ...{ status: 400, body: { code: 'invalid_state', error: expect.stringContaining('exported') } },
    });
    const other = await open({ deposit_address_strategy: 'prefer_destination' });
    expect(other.deposit_address).not.toBe(wallet.address);
    // The key of the address is known elsewhere now.
    const path = { wallet_id: account.wallet_id };
    await run('exportWallet', { path, body: exporting, signWith });
    expect(await listed()).toEqual([other]);
  });

  test('routes end with a change of the owner and with archiving; what was deposited before stays', async () => {
    const path = { wallet_id: wallet.id };
    const account = await open();
    await give(arbitrum, null, addressOf(account), ether);
    await detect();
    const body = { owner: { public_key: bobKey.publicKey } };
    await run('updateWallet', { path, body, signWith });
    await settle();
    const reason =
      'the wallet that the deposit is for was archived or given to another owner after the deposit';
    const [execution] = await executionsOf(account.wallet_id);
    expect(execution).toMatchObject({ status: 'failed', failure_reason: reason });
    expect((await orderOf(wallet.id, execution!.id)).status).toBe('rejected');
    expect(await held(arbitrum, null, addressOf(account))).toBe(ether);
    expect(await listed()).toEqual([]);
    // The new owner's address is another one.
    const signedByBob = { ...inputOf({}), signWith: [bobKey.privateKey] };
    const { deposit_accounts: made } = await run<CreateCryptoDepositAccountResponse>(
      'createCryptoDepositAccount',
      signedByBob,
    );
    expect(made[0]!.deposit_address).not.toBe(account.deposit_address);
    await run('archiveWallet', { path, signWith: [bobKey.privateKey] });
    await give(arbitrum, null, addressOf(made[0]!), ether);
    await settle();
    expect(await executionsOf(made[0]!.wallet_id)).toEqual([]);
    expect(await operations.run('listCryptoDepositAccounts', { path })).toMatchObject({ status: 404 });
  });

  test('the address has the policies and signers of the wallet; a policy is judged when a deposit is converted', async () => {
    const rule = { name: 'none', method: 'personal_sign', action: 'ALLOW', conditions: [] };
    const policy = await run<{ id: string }>('createPolicy', {
      body: { version: '1.0', name: 'no swaps', chain_type: 'ethereum', rules: [rule] },
    });
    const { id: signer } = await run<{ id: string }>('createKeyQuorum', {
      body: { public_keys: [bobKey.publicKey] },
    });
    const additional_signers = [{ signer_id: signer, override_policy_ids: [policy.id] }];
    const guarded = await makeWallet({ owner, policy_ids: [policy.id], additional_signers });
    const bySigner = { ...inputOf({}, guarded), signWith: [bobKey.privateKey] };
    const { deposit_accounts: made } = await run<CreateCryptoDepositAccountResponse>(
      'createCryptoDepositAccount',
      bySigner,
    );
    const path = { wallet_id: made[0]!.wallet_id };
    const at = await run<Wallet>('getWallet', { path });
    expect(at).toMatchObject({ policy_ids: [policy.id], additional_signers, owner_id: guarded.owner_id });
    await give(arbitrum, null, at, ether);
    await settle();
    const [denied] = await executionsOf(at.id);
    expect(denied).toMatchObject({ status: 'failed', failure_reason: expect.stringContaining('policy') });
    expect((await orderOf(guarded.id, denied!.id)).status).toBe('rejected');
    // On the wallet itself the automation would act under the owner's policies.
    Object.assign(operations.services, { diagnostics: false });
    const body = { ...bySigner.body, deposit_address_strategy: 'require_destination' };
    expect(await operations.run('createCryptoDepositAccount', { ...bySigner, body })).toMatchObject({
      ...{ status: 401, body: { code: 'zero_correct_authorization_signatures' } },
    });
  });

  test('an exchange that gives the deposit back fails the order', async () => {
    const account = await open();
    await give(arbitrum, null, addressOf(account), ether);
    let refund: ReturnType<typeof give> | undefined;
    const statusOf = async () => {
      refund ??= give(arbitrum, null, addressOf(account), ether);
      const paid = await refund;
      if (!('hash' in paid)) throw new Error(paid.message);
      return { kind: 'refunded', hash: paid.hash, reason: 'no liquidity' };
    };
    Object.assign(operations.services, { exchange: { ...operations.services.exchange, statusOf } });
    await settle();
    await settle();
    // The refund is no deposit.
    const [execution, ...others] = await executionsOf(account.wallet_id);
    const { status } = await orderOf(wallet.id, execution!.id);
    expect([execution!.status, status, others]).toEqual(['failed', 'failed', []]);
    expect(await held(arbitrum, null, addressOf(account))).toBe(ether);
  });

  test('deposits reach wallets of other chain types; a policy of theirs cannot protect an EVM address', async () => {
    const toSolana = { destination: { asset: 'usdc', chain: 'solana' } };
    const onSolana = await makeWallet({ chain_type: 'solana', owner });
    const account = await open({ ...toSolana, deposit_address_strategy: 'prefer_destination' }, onSolana);
    expect(account.deposit_address).toMatch(/^0x/);
    await give(arbitrum, null, addressOf(account), ether / 100n);
    await settle();
    await settle();
    expect(await executionsOf(account.wallet_id)).toMatchObject([{ status: 'completed' }]);
    expect(await held(solana, usdcOnSolana, onSolana)).toBeGreaterThan(29_000_000n);
    const rule = { name: 'all', method: '*', action: 'ALLOW', conditions: [] };
    const policy = await run<{ id: string }>('createPolicy', {
      body: { version: '1.0', name: 'all', chain_type: 'solana', rules: [rule] },
    });
    const guarded = await makeWallet({ chain_type: 'solana', owner, policy_ids: [policy.id] });
    for (const [to, more, error] of [
      [guarded, toSolana, 'the policies of a `solana` wallet'],
      [
        onSolana,
        { ...toSolana, deposit_address_strategy: 'require_destination' },
        '/deposit_address_strategy:',
      ],
    ] as const) {
      expect(await operations.run('createCryptoDepositAccount', inputOf(more, to))).toMatchObject({
        ...{ status: 400, body: { code: 'not_supported', error: expect.stringContaining(error) } },
      });
    }
  });

  const include = (...values: object[]) => ({ source: { mode: 'include', values } });
  test.each<[string, object, string, string]>([
    [
      'a destination without a chain',
      { destination: { asset: 'usdc' } },
      'invalid_data',
      '/destination/chain:',
    ],
    [
      'a destination on a chain of other wallets',
      { destination: { asset: 'usdc', chain: 'solana' } },
      'invalid_data',
      '/destination/chain: the wallet is not on `solana`',
    ],
    [
      'an unknown destination',
      { destination: { asset: 'gold', chain: 'base' } },
      'not_supported',
      '/destination/asset:',
    ],
    [
      'a destination on an unknown chain',
      { destination: { asset: 'usdc', chain: 'moon' } },
      'not_supported',
      '/destination/chain:',
    ],
    [
      'an unknown source',
      include({ asset: 'gold', chain: 'base' }),
      'not_supported',
      '/source/values/0/asset:',
    ],
    ['a source that no chain has', include({ asset: 'gold' }), 'not_supported', '/source/values/0/asset:'],
    [
      'an unknown chain',
      include({ asset: 'usdc', chain: 'eip155:2' }),
      'not_supported',
      '/source/values/0/chain:',
    ],
    [
      'a chain without a paymaster',
      include({ asset: 'usdc', chain: 'arbitrum' }, { asset: 'pathusd', chain: 'tempo' }),
      'not_supported',
      '/source/values/1/chain: no paymaster pays gas on `tempo` here',
    ],
    [
      'a source that is no EVM chain',
      include({ asset: 'usdc', chain: 'solana' }),
      'not_supported',
      '/source/values/0/chain: deposits are accepted on EVM chains only',
    ],
    [
      'a test network for a main network',
      include({ asset: 'usdc', chain: 'base_sepolia' }),
      'not_supported',
      '/source/values/0: /destination: nothing is exchanged between a test network and a main network',
    ],
    [
      'nothing but the destination asset at its own address',
      { ...include({ asset: 'usdc', chain: 'base' }), deposit_address_strategy: 'require_destination' },
      'not_supported',
      '/source: expected an asset that is exchanged for `usdc` on `base`',
    ],
    [
      'an unknown asset to exclude',
      { source: { mode: 'exclude', values: [{ asset: 'gold' }] } },
      'not_supported',
      '/source/values/0/asset:',
    ],
  ])('%s is refused', async (_, more, code, error) => {
    expect(await operations.run('createCryptoDepositAccount', inputOf(more))).toMatchObject({
      ...{ status: 400, body: { code, error: expect.stringContaining(error) } },
    });
    expect(await listed()).toEqual([]);
  });

  test('a wallet has at most 20 routes', async () => {
    const destinations = ['usdc', 'eth', 'eurc', 'usdt'].flatMap((asset) =>
      ['base', 'ethereum', 'arbitrum', 'optimism', 'polygon', 'avalanche'].map((chain) => ({ asset, chain })),
    );
    const source = { mode: 'exclude', values: [{ asset: 'usdc', chain: 'base' }] };
    const answers = [];
    for (const destination of destinations) {
      answers.push(await operations.run('createCryptoDepositAccount', inputOf({ source, destination })));
    }
    expect(answers.filter(({ status }) => status === 200).length).toBeLessThan(20);
    while ((await listed()).length < 20) {
      const values = [{ asset: 'eth', chain: 'base' }];
      for (const destination of destinations) {
        await operations.run(
          'createCryptoDepositAccount',
          inputOf({ source: { mode: 'exclude', values }, destination }),
        );
      }
    }
    expect(await listed()).toHaveLength(20);
    expect(await operations.run('createCryptoDepositAccount', inputOf({}))).toMatchObject({
      ...{ status: 400, body: { code: 'invalid_request' } },
    });
  });

  test('an exchange that cannot be reached is reported, and nothing is opened', async () => {
    const quote = () => Promise.reject(new Error('no route to host'));
    Object.assign(operations.services, { exchange: { ...operations.services.exchange, quote } });
    const failed = { status: 400, body: { code: 'transaction_broadcast_failure' } };
    expect(await operations.run('createCryptoDepositAccount', inputOf({}))).toMatchObject(failed);
    expect(await listed()).toEqual([]);
    const body = { source: { asset: 'eth', chain: 'arbitrum' }, destination: toUsdc };
    expect(await operations.run('quoteCryptoDeposit', { body })).toMatchObject(failed);
  });

  test('without a paymaster nothing is listed, quoted or opened, except at the address of the wallet', async () => {
    withoutBundlers();
    expect(await run('getCryptoDepositConfig', {})).toEqual({ chains: {}, currencies: [] });
    const body = { source: { asset: 'eth', chain: 'arbitrum' }, destination: toUsdc };
    for (const refused of [
      await operations.run('quoteCryptoDeposit', { body }),
      await operations.run('createCryptoDepositAccount', inputOf({})),
    ]) {
      expect(refused).toMatchObject({
        ...{
          status: 400,
          body: { code: 'not_supported', error: expect.stringContaining('no paymaster pays gas') },
        },
      });
    }
    expect(
      await operations.run('createCryptoDepositAccount', inputOf({ source: { mode: 'all' } })),
    ).toMatchObject({ status: 400, body: { code: 'not_supported' } });
    await give(arbitrum, null, wallet, ether);
    await detect();
    await open({ deposit_address_strategy: 'require_destination' });
    await give(arbitrum, null, wallet, ether);
    await settle();
    expect(await executionsOf(wallet.id)).toMatchObject([{ status: 'completed' }]);
    // The gas is left.
    expect(await held(arbitrum, null, wallet)).toBeGreaterThan(0n);
    expect(await held(base, usdc, wallet)).toBeGreaterThan(5_900_000_000n);
  });

  test('an order of another wallet is not found', async () => {
    const account = await open();
    await give(arbitrum, null, addressOf(account), ether);
    await detect();
    const { id } = (await nextOrder(operations.clock.nowMs - 1))!;
    const other = await makeWallet({});
    for (const path of [
      { wallet_id: other.id, order_id: id },
      { wallet_id: wallet.id, order_id: 'unknown' },
      { wallet_id: 'unknown', order_id: id },
    ]) {
      expect((await operations.run('getCryptoDepositOrder', { path })).status).toBe(404);
    }
    expect(await nextOrder(0, other.id)).toBeNull();
    // The execution of an ordinary automation is no order.
    const body = {
      owner_id: null,
      config: {
        trigger: { type: 'deposit', assets: { mode: 'all' } },
        action: { type: 'swap', destination_chain_asset: toUsdc },
      },
    };
    const automation = await run<{ id: string }>('createWalletAutomation', { body });
    const path = { wallet_id: other.id };
    await run('attachWalletAutomations', { path, body: { automation_ids: [automation.id] } });
    await give(base, eurc, other, 1n);
    await detect();
    const [execution] = await executionsOf(other.id);
    const orderPath = { wallet_id: other.id, order_id: execution!.id };
    expect((await operations.run('getCryptoDepositOrder', { path: orderPath })).status).toBe(404);
    expect(await held(arbitrum, usdcOnArbitrum, other)).toBe(0n);
  });
});
