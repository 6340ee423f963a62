import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ExternalFiatAccountResponse, FiatDepositAccountResponse } from '../../src/generated/schemas.ts';
import {
  at,
  base,
  type FiatWorld,
  ibanAccount,
  million,
  openFiatWorld,
  usdc,
} from '../integration/fiat/fiat-world.ts';
import { databaseKinds } from '../support/databases.ts';

// Random walks of payouts and deposits, while the chain and the provider fail and processes are killed: at the end each
// unit and each cent is somewhere, and everything was reported once.
const isLong = process.env.TEST_LONG === '1';

const ibans = ['DE89370400440532013000', 'DE13370400440532010003', 'DE83370400440532010004'];

const step = fc.oneof(
  fc.record({
    kind: fc.constant('payout' as const),
    amount: fc.integer({ min: 2, max: 40 }),
    to: fc.nat(2),
    fee: fc.nat(40),
  }),
  fc.record({
    kind: fc.constant('deposit' as const),
    cents: fc.integer({ min: 1, max: 50_000 }),
    outcome: fc.constantFrom('completed' as const, 'completed' as const, 'refunded' as const),
  }),
  fc.record({ kind: fc.constant('wait' as const), seconds: fc.integer({ min: 1, max: 20 }) }),
  fc.record({
    kind: fc.constant('weather' as const),
    losesAnswers: fc.boolean(),
    isDeaf: fc.boolean(),
    dies: fc.constantFrom('never' as const, 'before the commit' as const, 'after the commit' as const),
  }),
);

const cents = (text: string): bigint => BigInt(text.replace('.', ''));

describe.each(databaseKinds)('money on %s', (kind) => {
  let world: FiatWorld;
  beforeAll(async () => {
    world = await openFiatWorld(kind);
  });
  afterAll(() => world[Symbol.asyncDispose]());

  const bookOfEuros = async () => {
    const book = (await world.fiat.books()).find(({ currency }) => currency === 'eur');
    const zero = { capital: '0', paid_in: '0', paid_out: '0', refunded: '0', fees: '0', developer_fees: '0' };
    return book ?? { ...zero, balance: '0' };
  };

  test('is neither made nor lost', async () => {
    let walks = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 14 }), async (steps) => {
        walks += 1;
        const { userId, wallet } = await world.makeCustomer();
        const accounts = await Promise.all(
          ibans.map(async (iban) => {
            const path = { user_id: userId };
            const body = ibanAccount(iban);
            const answer = await world.operations.run('createUserExternalFiatAccount', { path, body });
            return (answer.body as ExternalFiatAccountResponse).external_fiat_account.id;
          }),
        );
        const opened = await world.operations.run('createFiatDepositAccount', {
          path: { wallet_id: wallet.id },
          body: {
            ...{ ...at, source: { currency: 'eur' }, destination: { asset: 'usdc', chain: 'base' } },
            developer_fee_percent: '1.25',
          },
        });
        const account = (opened.body as FiatDepositAccountResponse).fiat_deposit_account;
        const em = world.operations.database.orm.em.fork();
        const rows = await em.execute(
          'select virtual_account_id as id from fiat_deposit_accounts where id = ?',
          [account.id],
        );
        const accountId = (rows as { id: string }[])[0]!.id;
        const before = await bookOfEuros();
        const begun: { amount: bigint; fee: number; answer: { body: unknown } }[] = [];
        const paidIn: { amount: bigint; outcome: string }[] = [];
        for (const [index, each] of steps.entries()) {
          if (each.kind === 'wait') await world.wait(each.seconds);
          if (each.kind === 'weather') {
            const { kind: _kind, ...weather } = each;
            Object.assign(world.weather, weather);
          }
          if (each.kind === 'payout') {
            const { amount, fee } = each;
            const answer = await world.payout(wallet.id, accounts[each.to]!, String(amount), {
              developer_fee_percent: String(fee),
            });
            if (answer.status === 200) begun.push({ amount: BigInt(amount) * million, fee, answer });
            else expect(answer.status).toBe(400);
          }
          if (each.kind === 'deposit') {
            const reference = `walk ${walks} step ${index}`;
            const amount = (each.cents / 100).toFixed(2);
            const payment = { accountId, amount, reference, outcome: each.outcome };
            await world.fiat.receive(at.environment, payment);
            // The sender's bank sends it again.
            await world.fiat.receive(at.environment, payment);
            paidIn.push({ amount: BigInt(each.cents), outcome: each.outcome });
          }
        }
        Object.assign(world.weather, { losesAnswers: false, isDeaf: false, dies: 'never' });
        await world.wait(200);
        await world.wait(2000);

        const actions = await Promise.all(begun.map(({ answer }) => world.action(answer)));
        expect(actions.filter(({ status }) => status === 'pending')).toEqual([]);
        const spent = begun.reduce(
          (sum, { amount }, index) => (actions[index]!.status === 'succeeded' ? sum + amount : sum),
          0n,
        );
        const reported = await world.events(wallet.id, 'wallet_action.payout.');
        for (const { id } of actions) {
          const own = reported.filter((event) => event.wallet_action_id === id);
          expect(own.map(({ type }) => type === 'wallet_action.payout.created')).toEqual([true, false]);
        }
        const deposits = await world.events(wallet.id, 'wallet.deposit_account.');
        const ofType = (type: string) =>
          deposits.filter((event) => event.type === `wallet.deposit_account.${type}`);
        expect(ofType('deposit_started')).toHaveLength(paidIn.length);
        expect(ofType('deposit_completed').length + ofType('deposit_failed').length).toBe(paidIn.length);
        const arrived = ofType('deposit_completed').reduce((sum, event) => {
          const { amount } = (event as unknown as { data: { destination: { amount: string } } }).data
            .destination;
          const [whole = '', fraction = ''] = amount.split('.');
          return sum + BigInt(whole + fraction.padEnd(6, '0'));
        }, 0n);
        expect(await world.held(wallet.address)).toBe(1000n * million - spent + arrived);

        const after = await bookOfEuros();
        const moved = (name: keyof typeof before) => cents(String(after[name])) - cents(String(before[name]));
        expect(moved('paid_in')).toBe(paidIn.reduce((sum, { amount }) => sum + amount, 0n));
        expect(moved('capital') + moved('paid_in')).toBe(
          moved('paid_out') + moved('refunded') + moved('fees') + moved('developer_fees') + moved('balance'),
        );
        // 1.10 dollars for a euro.
        const ofPayouts = begun.map(({ amount, fee }, index) =>
          actions[index]!.status === 'succeeded' ? ((amount / 11_000n) * BigInt(fee)) / 100n : 0n,
        );
        const ofDeposits = ofType('deposit_completed').map((event) => {
          const { amount } = (event as unknown as { data: { source: { amount: string } } }).data.source;
          return (cents(amount) * 125n) / 10_000n;
        });
        expect(moved('developer_fees')).toBe(
          [...ofPayouts, ...ofDeposits].reduce((sum, fee) => sum + fee, 0n),
        );
        // Given out is what was funded: 1000 to each wallet, and the treasury's stock.
        const stocks = deposits.some(({ type }) => type.endsWith('completed')) || walks > 1 ? undefined : 0n;
        if (stocks === 0n) expect(await world.chains.total(base, usdc)).toBe(1000n * million);
      }),
      { numRuns: isLong ? 150 : 2 },
    );
  });
});
