import type { SqlEntityManager } from '@mikro-orm/sql';
import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { recordFiatDeposits } from '../../../src/domain/money/fiat-deposits/record-fiat-deposits.ts';
import type { FiatDepositAccount, Wallet } from '../../../src/generated/schemas.ts';
import type { FiatDepositReport } from '../../../src/ports/fiat.ts';
import { createNotes } from '../../../src/ports/operation-context.ts';
import { databaseKinds } from '../../support/databases.ts';
import { at, type FiatWorld, million, openFiatWorld, usdc } from './fiat-world.ts';

const isLong = process.env.TEST_LONG === '1';

describe.each(databaseKinds)('fiat deposits on %s', (kind) => {
  let world: FiatWorld;
  let wallet: Wallet;
  beforeAll(async () => {
    world = await openFiatWorld(kind);
  });
  beforeEach(async () => {
    ({ wallet } = await world.makeCustomer());
  });
  afterAll(() => world[Symbol.asyncDispose]());

  const body = (currency = 'eur') => ({
    ...at,
    source: { currency },
    destination: { asset: 'usdc', chain: 'base' },
  });
  async function open(currency = 'eur'): Promise<FiatDepositAccount> {
    const answer = await world.operations.run('createFiatDepositAccount', {
      path: { wallet_id: wallet.id },
      body: body(currency),
    });
    expect(answer.status).toBe(200);
    return (answer.body as { fiat_deposit_account: FiatDepositAccount }).fiat_deposit_account;
  }
  const find = async (account: FiatDepositAccount) => {
    const path = { wallet_id: wallet.id, deposit_account_id: account.id };
    const { body } = await world.operations.run('getFiatDepositAccount', { path });
    return (body as { fiat_deposit_account: FiatDepositAccount }).fiat_deposit_account;
  };
  /** The row of an account, with its id at the provider. */
  const virtualAccountOf = async ({ id }: FiatDepositAccount) => {
    const em = world.operations.database.orm.em.fork();
    const rows = await em.execute('select virtual_account_id from fiat_deposit_accounts where id = ?', [id]);
    return (rows as { virtual_account_id: string }[])[0]!.virtual_account_id;
  };
  async function pay(
    account: FiatDepositAccount,
    amount: string,
    more: { outcome?: 'completed' | 'in_review' | 'refunded'; reference?: string } = {},
  ): Promise<string> {
    const { outcome = 'completed', reference = `reference ${amount}` } = more;
    const accountId = await virtualAccountOf(account);
    const deposit = { accountId, amount, reference, outcome, senderName: 'Alice Example' };
    const received = await world.fiat.receive(at.environment, deposit);
    if (received === undefined || received === 'amount') throw new Error(`received ${received}`);
    return received.id;
  }
  const eventsOf = async () => {
    const prefix = 'wallet.deposit_account.';
    const events = await world.events(wallet.id, prefix);
    return events.map((event) => ({ ...event, type: event.type.replace(prefix, '') }));
  };

  test('money that is paid in arrives in the wallet as the asset, once', async () => {
    const account = await open();
    const id = await pay(account, '250.00');
    expect(await pay(account, '250.00')).toBe(id);
    await world.wait(60);
    // 250 euros less 25 hundredths of a percent, at 1.10 US dollars.
    const arrived = 274_318_000n;
    const [started, completed, ...rest] = await eventsOf();
    expect(rest).toEqual([]);
    const head = {
      wallet_id: wallet.id,
      deposit_account_id: account.id,
      deposit_type: 'fiat',
      provider_deposit_id: id,
      ...at,
    };
    const source = { amount: '250.00', currency: 'eur', payment_rail: 'sepa', sender_name: 'Alice Example' };
    expect(started).toMatchObject({
      ...{ type: 'deposit_started', ...head },
      data: { source, destination: { asset: 'usdc', chain: 'base' } },
    });
    expect(completed).toMatchObject({
      ...{ type: 'deposit_completed', ...head },
      data: { source, destination: { asset: 'usdc', chain: 'base', amount: '274.318' } },
    });
    expect(await world.held(wallet.address)).toBe(1000n * million + arrived);
    const funds = await world.events(wallet.id, 'wallet.funds_deposited');
    const { data } = completed as unknown as { data: { destination: { transaction_hash: string } } };
    const reported = funds.filter((event) => event.transaction_hash === data.destination.transaction_hash);
    expect(reported).toHaveLength(1);
    expect(reported[0]).toMatchObject({
      asset: { type: 'erc20', address: usdc },
      amount: String(arrived),
      bridge_metadata: { type: 'fiat_deposit', method: 'virtual_account', activity_id: id },
    });
  });

  test('the same account again is the one that is there, also when two requests come at once', async () => {
    const run = () =>
      world.operations.run('createFiatDepositAccount', { path: { wallet_id: wallet.id }, body: body('usd') });
    const [first, second] = await Promise.all([run(), run()]);
    expect(first.status).toBe(200);
    expect(second).toEqual(first);
    expect(await open('usd')).toEqual(
      (first.body as { fiat_deposit_account: FiatDepositAccount }).fiat_deposit_account,
    );
    const other = await open('gbp');
    const listed = await world.operations.run('listFiatDepositAccounts', {
      path: { wallet_id: wallet.id },
      query: at,
    });
    expect(listed.body).toMatchObject({
      fiat_deposit_accounts: expect.arrayContaining([expect.objectContaining({ id: other.id })]),
      next_cursor: null,
    });
    expect((listed.body as { fiat_deposit_accounts: unknown[] }).fiat_deposit_accounts).toHaveLength(2);
  });

  test('the fee of the app is kept from deposits, and a second request does not change it', async () => {
    const run = (fee?: string) =>
      world.operations.run('createFiatDepositAccount', {
        path: { wallet_id: wallet.id },
        body: { ...body(), ...(fee === undefined ? {} : { developer_fee_percent: fee }) },
      });
    const answers = await Promise.all([run('1.5'), run('2')]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409]);
    const [opened, refused] = answers[0].status === 200 ? answers : answers.toReversed();
    const { fiat_deposit_account: account } = opened!.body as { fiat_deposit_account: FiatDepositAccount };
    const fee = account.developer_fee_percent;
    expect(refused!.body).toMatchObject({
      code: 'resource_conflict',
      error: `/developer_fee_percent: the activated account has \`${fee}\`, got \`${fee === '2' ? '1.5' : '2'}\``,
    });
    expect((await run()).status).toBe(409);
    expect(await run(`0${fee}${fee === '2' ? '.' : ''}0`)).toEqual(opened);
    expect(await find(account)).toEqual(account);
    await pay(account, '10.01');
    await world.wait(60);
    // 10.01 less 0.02 for the bank, and 0.15 or 0.20 for the app, at 1.10 US dollars.
    const arrived = fee === '2' ? 10_769_000n : 10_824_000n;
    expect(await world.held(wallet.address)).toBe(1000n * million + arrived);
    // A deposit that the fees use up goes back.
    const other = await world.operations.run('createFiatDepositAccount', {
      path: { wallet_id: wallet.id },
      body: { ...body('gbp'), developer_fee_percent: '99.99' },
    });
    const { fiat_deposit_account: dear } = other.body as { fiat_deposit_account: FiatDepositAccount };
    await pay(dear, '100.00');
    await world.wait(60);
    expect((await eventsOf()).at(-1)).toMatchObject({ type: 'deposit_failed' });
  });

  test('a deposit that is refunded is reported as failed', async () => {
    const account = await open();
    await pay(account, '10.00', { outcome: 'refunded' });
    await world.wait(60);
    const [started, failed] = await eventsOf();
    expect(started).toMatchObject({ type: 'deposit_started' });
    expect(failed).toMatchObject({
      type: 'deposit_failed',
      data: {
        source: { amount: '10.00', currency: 'eur' },
        reason: expect.any(String),
        reason_code: expect.stringMatching(/^[a-z_]+$/),
        refunded_at: expect.stringMatching(/Z$/),
      },
    });
    expect(await world.held(wallet.address)).toBe(1000n * million);
  });

  test('an archived wallet has no activated account, and what is paid in later is refunded', async () => {
    const account = await open();
    const path = { wallet_id: wallet.id };
    expect((await world.operations.run('archiveWallet', { path })).status).toBe(200);
    await world.wait(20);
    await pay(account, '20.00');
    await world.wait(60);
    const types = (await eventsOf()).map(({ type }) => type);
    expect(types).toEqual(['deposit_started', 'deposit_failed']);
    expect(
      (
        await world.operations.run('getFiatDepositAccount', {
          path: { ...path, deposit_account_id: account.id },
        })
      ).status,
    ).toBe(404);
    const em = world.operations.database.orm.em.fork();
    const rows = await em.execute('select status from fiat_deposit_accounts where id = ?', [account.id]);
    expect(rows).toEqual([{ status: 'deactivated' }]);
    expect(await em.execute('select id from fiat_deposit_instructions where id = ?', [account.id])).toEqual(
      [],
    );
  });

  test('instructions that the provider prepares are shown once they are there', async () => {
    const { nowMs } = world.operations.clock;
    const prepared = {
      id: `va-${nowMs}`,
      status: 'activated',
      currency: 'mxn',
      paymentRails: ['spei'],
    } as const;
    world.override({ openVirtualAccount: async () => ({ ...prepared, instructions: null }) });
    const account = await open('mxn');
    expect(account.deposit_instructions).toBeNull();
    const instructions = { clabe: '646180111111111117', payment_rails: ['spei'] };
    world.override({ virtualAccount: async () => ({ ...prepared, instructions }) });
    await world.wait(10);
    world.override({});
    expect((await find(account)).deposit_instructions).toEqual(instructions);
  });

  test('reports in any order and number lead forward, and tell of each change once', async () => {
    const states = ['received', 'in_review', 'delivering', 'delivered', 'refunded'] as const;
    const account = await open();
    const virtualAccountId = await virtualAccountOf(account);
    const { operations } = world;
    let position = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom(...states), { minLength: 1, maxLength: 8 }),
        fc.integer({ min: 1, max: 4 }),
        async (order, size) => {
          position += 1;
          const depositId = `deposit ${position}`;
          const report = (state: (typeof states)[number]): FiatDepositReport => ({
            ...{ depositId, virtualAccountId, state, amount: '5.00', currency: 'eur', atMs: 0 },
            ...(state === 'delivered' ? { transactionHash: '0x00', rawOutput: 5n } : {}),
          });
          for (let from = 0; from < order.length; from += size) {
            position += 1;
            const page = {
              reports: order.slice(from, from + size).map(report),
              cursor: `test ${position}`,
              hasMore: false,
            };
            await operations.database.orm.em.fork().transactional(async (em) => {
              const rows = await em.execute('select position from fiat_positions');
              const after = (rows as { position: string }[])[0]!.position || undefined;
              const context = {
                ...operations.services,
                em: em as SqlEntityManager,
                notes: createNotes(),
                nowMs: operations.clock.nowMs,
              };
              await recordFiatDeposits(context, { ...at, after, page });
              // A page that was read from an earlier position changes nothing.
              await recordFiatDeposits(context, { ...at, after: 'earlier', page });
            });
          }
          const events = (await eventsOf()).filter(
            (event) => event['provider_deposit_id' as never] === depositId,
          );
          const types = events.map(({ type }) => type);
          expect(types).toEqual(
            order.includes('refunded') ? ['deposit_started', 'deposit_failed'] : ['deposit_started'],
          );
        },
      ),
      { numRuns: isLong ? 300 : 12 },
    );
    await operations.database.orm.em.fork().execute("update fiat_positions set position = ''");
  });
});
