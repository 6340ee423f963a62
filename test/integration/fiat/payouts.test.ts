import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { ExternalFiatAccountResponse, Wallet } from '../../../src/generated/schemas.ts';
import { databaseKinds } from '../../support/databases.ts';
import { keyOf } from '../../support/signer/login-clients.ts';
import { newOwner } from '../../support/signer/owner.ts';
import { at, base, type FiatWorld, ibanAccount, million, openFiatWorld, usdc } from './fiat-world.ts';

describe.each(databaseKinds)('payouts on %s', (kind) => {
  let world: FiatWorld;
  let userId: string;
  let wallet: Wallet;
  beforeAll(async () => {
    world = await openFiatWorld(kind);
  });
  beforeEach(async () => {
    ({ userId, wallet } = await world.makeCustomer());
  });
  afterEach(() => {
    world.override({});
    world.fiat.setUp(true);
  });
  afterAll(() => world[Symbol.asyncDispose]());

  /** The id of a registered bank account. */
  async function register(iban?: string): Promise<string> {
    const { body } = await world.operations.run('createUserExternalFiatAccount', {
      path: { user_id: userId },
      body: ibanAccount(iban),
    });
    return (body as ExternalFiatAccountResponse).external_fiat_account.id;
  }
  const eventsOfPayouts = async () => {
    const prefix = 'wallet_action.payout.';
    return (await world.events(wallet.id, prefix)).map(({ type }) => type.replace(prefix, ''));
  };
  const transactions = async () => {
    const em = world.operations.database.orm.em.fork();
    const rows = await em.execute('select id from transactions where wallet_id = ?', [wallet.id]);
    return (rows as unknown[]).length;
  };
  const bookOf = async (currency: string) =>
    (await world.fiat.books()).find((book) => book.currency === currency) ?? { paid_out: '0' };
  const cents = (text: string) => Math.round(Number(text) * 100);

  test('the signer signs the payout of an owned wallet, and no other amount', async () => {
    const accountId = await register();
    const owner = newOwner();
    const { privateKey, publicKey } = keyOf(owner);
    const made = await world.operations.run('createWallet', {
      body: {
        ...{ chain_type: 'ethereum', owner: { public_key: publicKey } },
        entity: { type: 'user', id: userId },
      },
    });
    const owned = made.body as Wallet;
    await world.chains.fund(base, { address: owned.address, tokenAddress: null, rawAmount: 10n ** 18n });
    const funds = { tokenAddress: usdc, rawAmount: 100n * million, decimals: 6 };
    await world.chains.fund(base, { address: owned.address, ...funds });
    const pays = (amount: string) =>
      world.operations.run('createFiatPayout', {
        path: { wallet_id: owned.id },
        body: {
          source: { asset: 'usdc', chain: 'base', amount },
          destination: { fiat_account_id: accountId, payment_rail: 'sepa' },
        },
        signWith: [privateKey],
      });
    const answer = await pays('25');
    expect(answer).toMatchObject({ status: 200 });
    await world.wait(60);
    expect((await world.action(answer)).status).toBe('succeeded');
    expect(await world.held(owned.address)).toBe(75n * million);
    // A provider, or a server, that asks for more than the owner has signed.
    const { keyStore } = world.operations.services;
    const { signWithWallet } = keyStore;
    Object.assign(keyStore, {
      signWithWallet: (...[sealed, binding, task, use]: Parameters<typeof signWithWallet>) =>
        signWithWallet(
          sealed,
          binding,
          JSON.parse(JSON.stringify(task).replace('7d2b7500', '7d2b7501')),
          use,
        ),
    });
    try {
      await expect(pays('2100')).resolves.toMatchObject({ body: { code: 'insufficient_funds' } });
      await world.chains.fund(base, { ...funds, address: owned.address, rawAmount: 3000n * million });
      await expect(pays('2100')).rejects.toThrow('asks for something else');
    } finally {
      Object.assign(keyStore, { signWithWallet });
    }
  });

  test('the deposit goes to the provider and the money to the bank', async () => {
    const accountId = await register();
    const before = cents((await bookOf('eur')).paid_out);
    const answer = await world.payout(wallet.id, accountId, '100.00');
    expect(answer).toEqual({
      status: 200,
      body: {
        id: expect.any(String),
        type: 'payout',
        wallet_id: wallet.id,
        status: 'pending',
        created_at: expect.stringMatching(/Z$/),
        ...at,
        source: { asset: 'usdc', chain: 'base', amount: '100.00' },
        destination: { fiat_account_id: accountId },
        developer_fee_percent: '0',
        reference_id: null,
      },
    });
    expect((await world.action(answer)).steps).toMatchObject([
      { type: 'evm_transaction', caip2: base, status: 'pending' },
      { type: 'external_transaction', status: 'preparing' },
    ]);
    await world.wait(60);
    const ended = await world.action(answer);
    expect(ended.status).toBe('succeeded');
    expect(ended.steps).toEqual([
      expect.objectContaining({ type: 'evm_transaction', status: 'confirmed' }),
      { type: 'external_transaction', status: 'confirmed' },
    ]);
    expect(await world.held(wallet.address)).toBe(900n * million);
    expect(await eventsOfPayouts()).toEqual(['created', 'succeeded']);
    const [created] = await world.events(wallet.id, 'wallet_action.payout.created');
    expect(created).toMatchObject({
      source_asset: 'usdc',
      source_chain: 'base',
      source_amount: '100',
      destination_fiat_account_id: accountId,
      destination_currency: 'eur',
      destination_payment_rail: 'sepa',
      ...at,
      status: 'pending',
    });
    expect(created).not.toHaveProperty('source');
    // 100 USDC at 1.10 US dollars for a euro, down to the cent.
    expect(cents((await bookOf('eur')).paid_out) - before).toBe(9090);
  });

  test.each([
    ['DE13370400440532010003', 'the bank returned the payment'],
    ['DE83370400440532010004', 'the payment could not be delivered to the bank'],
  ])('the deposit for %s is refunded on chain', async (iban, reason) => {
    const answer = await world.payout(wallet.id, await register(iban));
    await world.wait(10);
    expect((await world.action(answer)).status).toBe('pending');
    await world.wait(60);
    const ended = await world.action(answer);
    expect(ended).toMatchObject({
      status: 'failed',
      failure_reason: {
        message: `The payout provider gave the deposit back: ${reason}.`,
        details: { refund: { caip2: base, transaction_hash: expect.stringMatching(/^0x[0-9a-f]{64}$/) } },
      },
    });
    expect(await world.held(wallet.address)).toBe(1000n * million);
    expect(await eventsOfPayouts()).toEqual(['created', 'failed']);
  });

  test('a payout in review stays pending', async () => {
    const answer = await world.payout(wallet.id, await register('DE67370400440532010001'));
    await world.wait(300);
    expect(await world.action(answer)).toMatchObject({
      status: 'pending',
      steps: [{ status: 'confirmed' }, { status: 'pending' }],
    });
  });

  test('a deposit in a block after the expiry is given back', async () => {
    const accountId = await register();
    world.weather.isDeaf = true;
    const answer = await world.payout(wallet.id, accountId);
    expect(answer.status).toBe(200);
    await world.wait(630);
    world.weather.isDeaf = false;
    await world.wait(120);
    expect(await world.action(answer)).toMatchObject({
      status: 'failed',
      failure_reason: {
        message:
          'The payout provider gave the deposit back: the deposit was included after the payout had expired.',
      },
    });
    expect(await world.held(wallet.address)).toBe(1000n * million);
  });

  test('a payout whose deposit reverts fails, and the bank pays nothing', async () => {
    const accountId = await register();
    const answer = await world.payout(wallet.id, accountId, '600');
    // The second one spends what the first one has: both are signed before either is in a block.
    const second = await world.payout(wallet.id, accountId, '600');
    // A revert is final once no reorganization can undo it.
    await world.wait(60);
    await world.wait(1500);
    expect((await world.action(answer)).status).toBe('succeeded');
    const { status, steps } = await world.action(second);
    expect(status).toBe('failed');
    expect(steps).toMatchObject([{ status: 'reverted' }, { status: 'rejected' }]);
    expect(await world.held(wallet.address)).toBe(400n * million);
  });

  test('a payout whose deposit can never be in a block is rejected, and the bank pays nothing', async () => {
    const accountId = await register();
    const begin = () =>
      world.operations.run('createFiatPayout', {
        path: { wallet_id: wallet.id },
        body: {
          source: { asset: 'eth', chain: 'base', amount: '0.9' },
          destination: { fiat_account_id: accountId },
        },
      });
    const before = cents((await bookOf('eur')).paid_out);
    // Both are signed before either is in a block, and there is ether for one.
    const [first, second] = [await begin(), await begin()];
    await world.wait(60);
    await world.wait(25 * 60 * 60);
    expect((await world.action(first)).status).toBe('succeeded');
    const rejected = await world.action(second);
    expect(rejected).toMatchObject({
      status: 'rejected',
      failure_reason: { message: expect.any(String) },
      steps: [{ status: 'rejected' }, { status: 'rejected', failure_reason: expect.any(Object) }],
    });
    const events = await world.events(wallet.id, 'wallet_action.payout.');
    expect(events.filter((event) => event.wallet_action_id === rejected.id).map(({ type }) => type)).toEqual([
      'wallet_action.payout.created',
      'wallet_action.payout.rejected',
    ]);
    // 0.9 ether at 3000 US dollars, at 1.10 US dollars for a euro, once.
    expect(cents((await bookOf('eur')).paid_out) - before).toBe(245_454);
  });

  test('a nonce pays out once, and so does a request that is repeated at the same time', async () => {
    const accountId = await register();
    const nonce = 'treasury-2026-01-01-000001';
    expect((await world.payout(wallet.id, accountId, '10', { nonce })).status).toBe(200);
    expect(await world.payout(wallet.id, accountId, '10', { nonce })).toMatchObject({
      status: 409,
      body: { code: 'resource_conflict' },
    });
    const again = {
      path: { wallet_id: wallet.id },
      body: {
        source: { asset: 'usdc', chain: 'base', amount: '20' },
        destination: { fiat_account_id: accountId },
      },
      idempotencyKey: 'payout-1',
    };
    const first = await world.operations.run('createFiatPayout', again);
    expect(await world.operations.run('createFiatPayout', again)).toEqual(first);
    await world.wait(60);
    expect(await world.held(wallet.address)).toBe(970n * million);
  });

  test('nothing is signed for a payout that is refused', async () => {
    const accountId = await register();
    const { userId: strangerId } = await world.makeCustomer();
    const stranger = await world.operations.run('createUserExternalFiatAccount', {
      path: { user_id: strangerId },
      body: ibanAccount(),
    });
    const strangerAccount = (stranger.body as ExternalFiatAccountResponse).external_fiat_account.id;
    const refused = async (answer: Promise<{ status: number; body: unknown }>) => {
      const { status, body } = await answer;
      return [status, (body as { code?: string }).code, (body as { error: string }).error.split(':')[0]];
    };
    expect(await refused(world.payout(wallet.id, strangerAccount))).toEqual([
      ...[400, 'invalid_data', '/destination/fiat_account_id'],
    ]);
    expect(await refused(world.payout(wallet.id, 'unknown'))).toEqual([
      ...[400, 'invalid_data', '/destination/fiat_account_id'],
    ]);
    for (const amount of ['0', '0.0000001', '0.50']) {
      expect(await refused(world.payout(wallet.id, accountId, amount))).toEqual([
        ...[400, 'invalid_data', '/source/amount'],
      ]);
    }
    expect(await refused(world.payout(wallet.id, accountId, '1001'))).toEqual([
      ...[400, 'insufficient_funds', expect.any(String)],
    ]);
    expect((await world.payout('unknown', accountId)).status).toBe(404);
    const elsewhere = (source: object) =>
      world.operations.run('createFiatPayout', {
        path: { wallet_id: wallet.id },
        body: { source, destination: { fiat_account_id: accountId } },
      });
    for (const source of [
      { asset: 'usdc', chain: 'solana', amount: '1' },
      { asset: 'usdc', chain: 'nowhere', amount: '1' },
      { asset: 'doge', chain: 'base', amount: '1' },
    ]) {
      expect((await refused(elsewhere(source))).slice(0, 2)).toEqual([400, 'not_supported']);
    }
    expect(await transactions()).toBe(0);
  });

  test('nothing is signed when the provider is down, changes the amount, or leaves less than a minute', async () => {
    const accountId = await register();
    world.fiat.setUp(false);
    expect(await world.payout(wallet.id, accountId)).toMatchObject({
      status: 400,
      body: {
        code: 'transaction_broadcast_failure',
        error: 'the provider could not be reached; nothing was signed or sent',
      },
    });
    world.fiat.setUp(true);
    const { nowMs } = world.operations.clock;
    const canceled: string[] = [];
    const opened = {
      id: 'scripted',
      depositAddress: '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0',
      rawAmount: 100n * million,
      expiresAtSeconds: nowMs / 1000 + 59,
    };
    world.override({
      openPayout: async () => opened,
      cancelPayout: async (id) => void canceled.push(id),
    });
    expect(await world.payout(wallet.id, accountId)).toMatchObject({
      status: 400,
      body: { code: 'transaction_broadcast_failure' },
    });
    expect(canceled).toEqual(['scripted']);
    world.override({ openPayout: async () => ({ ...opened, rawAmount: 101n * million }) });
    expect(await world.payout(wallet.id, accountId)).toMatchObject({
      status: 400,
      body: { code: 'invalid_data' },
    });
    world.override({ cancelPayout: async (id) => void canceled.push(id) });
    world.weather.reverts = true;
    expect(await world.payout(wallet.id, accountId)).toMatchObject({
      status: 400,
      body: { code: 'transaction_execution_failure' },
    });
    expect(canceled).toHaveLength(2);
    world.weather.reverts = false;
    // A minute is enough.
    world.override({ openPayout: async () => ({ ...opened, expiresAtSeconds: nowMs / 1000 + 60 }) });
    expect((await world.payout(wallet.id, accountId)).status).toBe(200);
    expect(await transactions()).toBe(1);
  });

  test('a policy allows payouts by `*` rules only, which see the amount in every spelling', async () => {
    const accountId = await register();
    const atMost = (value: string) => ({
      name: 'small',
      method: '*',
      action: 'ALLOW',
      conditions: [{ field_source: 'action_request_body', field: 'source.amount', operator: 'lte', value }],
    });
    const { body: policy } = await world.operations.run('createPolicy', {
      body: { version: '1.0', name: 'small payouts', chain_type: 'ethereum', rules: [atMost('50')] },
    });
    await world.operations.run('updateWallet', {
      path: { wallet_id: wallet.id },
      body: { policy_ids: [(policy as { id: string }).id] },
    });
    const canceled: string[] = [];
    world.override({ cancelPayout: async (id) => void canceled.push(id) });
    expect(await world.payout(wallet.id, accountId, '51')).toMatchObject({
      status: 400,
      body: { code: 'policy_violation' },
    });
    expect(canceled).toHaveLength(1);
    expect((await world.payout(wallet.id, accountId, '50')).status).toBe(200);
  });

  test('the fee of the app is kept from what the bank account gets', async () => {
    // Payouts of other tests may be under way.
    await world.wait(60);
    const before = (await bookOf('eur')) as Record<string, string>;
    const fee = { developer_fee_percent: '12.50' };
    const answer = await world.payout(wallet.id, await register(), '100', fee);
    expect(answer).toMatchObject({ status: 200, body: fee });
    await world.wait(60);
    expect(await world.action(answer)).toMatchObject({ status: 'succeeded', ...fee });
    expect(await world.held(wallet.address)).toBe(900n * million);
    // 100 USDC are 90.90 euros, and an eighth of them is 11.3625.
    const after = (await bookOf('eur')) as Record<string, string>;
    const moved = (name: string) => cents(after[name] ?? '0') - cents(before[name] ?? '0');
    expect([moved('paid_out'), moved('developer_fees')]).toEqual([7954, 1136]);
    for (const { type, ...event } of await world.events(wallet.id, 'wallet_action.payout.')) {
      expect([type, event]).toEqual([type, expect.not.objectContaining(fee)]);
    }
    // 99 % of 90.90 leaves less than a euro.
    const refused = await world.payout(wallet.id, await register(), '100', { developer_fee_percent: '99' });
    expect(refused).toMatchObject({ status: 400, body: { code: 'invalid_data' } });
    expect((refused.body as { error: string }).error).toMatch(/^\/source\/amount: /);
  });

  test('payouts of versions without fees have the fee 0', async () => {
    const answer = await world.payout(wallet.id, await register(), '10');
    await world.wait(60);
    const action = await world.action(answer);
    const em = world.operations.database.orm.em.fork();
    const rows = await em.execute('select details from wallet_actions where id = ?', [action.id]);
    const { developer_fee_percent: fee, ...details } = JSON.parse(
      (rows as { details: string }[])[0]!.details,
    );
    expect(fee).toBe('0');
    await em.execute('update wallet_actions set details = ? where id = ?', [
      JSON.stringify(details),
      action.id,
    ]);
    expect(await world.action(answer)).toEqual(action);
  });

  test('a removed account takes no payouts, and those under way go on', async () => {
    const accountId = await register();
    const begun = await world.payout(wallet.id, accountId);
    const path = { user_id: userId, account_id: accountId };
    expect((await world.operations.run('deleteUserExternalFiatAccount', { path })).status).toBe(200);
    expect(await world.payout(wallet.id, accountId)).toMatchObject({
      status: 400,
      body: { code: 'invalid_data' },
    });
    await world.wait(60);
    expect((await world.action(begun)).status).toBe('succeeded');
  });

  test('a customer whom the provider has paused is paid nothing', async () => {
    const accountId = await register();
    const em = world.operations.database.orm.em.fork();
    await em.execute(
      "update fiat_customers set snapshot = replace(snapshot, 'active', 'paused') where entity_id = ?",
      [userId],
    );
    expect(await world.payout(wallet.id, accountId)).toMatchObject({
      status: 400,
      body: { code: 'invalid_state' },
    });
    expect(await transactions()).toBe(0);
  });

  test('every unit is at the wallet, at the bank, or paid back', async () => {
    const accounts = [await register(), await register('DE13370400440532010003')];
    const [stocked, paidBefore] = [
      await world.chains.total(base, usdc),
      cents((await bookOf('eur')).paid_out),
    ];
    let spent = 0n;
    for (const [index, amount] of [3n, 5n, 7n, 11n].entries()) {
      await world.payout(wallet.id, accounts[index % 2]!, String(amount));
      if (index % 2 === 0) spent += amount;
    }
    await world.wait(90);
    expect(await world.held(wallet.address)).toBe((1000n - spent) * million);
    const [total, before] = [await world.chains.total(base, usdc), stocked];
    expect(total).toBe(before);
    const book = (await world.fiat.books()).find(({ currency }) => currency === 'eur')!;
    // 3 and 7 USDC are 2.72 and 6.36 euros, each payout down to the cent.
    expect(cents(book.paid_out) - paidBefore).toBe(272 + 636);
    expect(cents(book.capital) + cents(book.paid_in)).toBe(
      cents(book.paid_out) +
        cents(book.refunded) +
        cents(book.fees) +
        cents(book.developer_fees) +
        cents(book.balance),
    );
  });
});
