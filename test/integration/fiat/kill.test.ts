import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ExternalFiatAccountResponse } from '../../../src/generated/schemas.ts';
import { databaseKinds } from '../../support/databases.ts';
import { bankAccountOf, carryOut, type Order, type Plan } from './fiat-process.ts';
import { type FiatWorld, ibanAccount, million, openFiatWorld } from './fiat-world.ts';

// A process is killed with SIGKILL while it pays out, before or after any commit, any call of the provider and any
// broadcast. The client repeats its request, and another process goes on: paid once, or refunded once.
const isLong = process.env.TEST_LONG === '1';

const ibans = ['DE89370400440532013000', 'DE13370400440532010003', 'DE83370400440532010004'] as const;
const cents = (text: string | number): bigint => BigInt(Number(text).toFixed(2).replace('.', ''));

describe.each(databaseKinds)('processes on %s that are killed', (kind) => {
  let world: FiatWorld;
  beforeAll(async () => {
    world = await openFiatWorld(kind, { isKept: true });
  });
  afterAll(() => world[Symbol.asyncDispose]());

  /** Whether the process was killed, or did everything. The world continues in this process. */
  async function runKilled(orders: readonly Order[], killAt: Plan['killAt']): Promise<boolean> {
    const kept = await world.keep();
    const plan: Plan = { kept, orders, killAt };
    const child = fork(join(import.meta.dirname, 'fiat-process.ts'), [JSON.stringify(plan)]);
    const [code, signal] = await once(child, 'exit');
    expect([code, signal]).toEqual(signal === null ? [0, null] : [null, 'SIGKILL']);
    const waited = orders.reduce((sum, order) => (order.kind === 'wait' ? sum + order.seconds : sum), 0);
    world = await openFiatWorld(kind, { kept: { ...kept, nowMs: kept.nowMs + waited * 1000 } });
    return signal !== null;
  }

  async function makeCustomer() {
    const { userId, wallet } = await world.makeCustomer();
    const accounts: string[] = [];
    for (const iban of ibans) {
      const { body } = await world.operations.run('createUserExternalFiatAccount', {
        path: { user_id: userId },
        body: ibanAccount(iban),
      });
      accounts.push((body as ExternalFiatAccountResponse).external_fiat_account.id);
    }
    return { wallet, accounts };
  }

  const bookOfEuros = async () => {
    const book = (await world.fiat.books()).find(({ currency }) => currency === 'eur');
    const zero = { capital: '0', paid_in: '0', paid_out: '0', refunded: '0', fees: '0', developer_fees: '0' };
    return book ?? { ...zero, balance: '0' };
  };
  type Book = Awaited<ReturnType<typeof bookOfEuros>>;
  const movedIn =
    (before: Book, after: Book) =>
    (name: keyof Book & ('capital' | 'paid_in' | 'paid_out' | 'refunded' | 'fees' | 'balance')) =>
      cents(after[name]) - cents(before[name]);

  /** Answers whose payouts exist; a repeated request of one that exists is a conflict. */
  async function actionsOf(walletId: string) {
    const { body } = await world.operations.run('listWalletActions', { path: { wallet_id: walletId } });
    return (body as { data: { id: string; status: string }[] }).data;
  }

  /** Kills a payout at a point; returns whether it came to that. */
  async function killPayout(iban: number, killAt: Plan['killAt']): Promise<boolean> {
    const { wallet, accounts } = await makeCustomer();
    const before = await bookOfEuros();
    const nonce = `payout-to-${iban}-killed-at-${killAt}`;
    const payout: Order = {
      ...{ kind: 'payout', walletId: wallet.id, accountId: accounts[iban]! },
      ...{ amount: '110', nonce },
    };
    const orders: Order[] = [payout, { kind: 'wait', seconds: 40 }];
    const isKilled = await runKilled(orders, killAt);
    const wasStored = (await actionsOf(wallet.id)).length === 1;
    // The client does not know, and asks again.
    const again = await carryOut(world, payout);
    expect(again.status, String(killAt)).toBe(wasStored ? 409 : 200);
    await world.wait(200);
    await world.wait(2000);
    const actions = await actionsOf(wallet.id);
    const isPaid = iban === 0;
    expect(
      actions.map(({ status }) => status),
      String(killAt),
    ).toEqual([isPaid ? 'succeeded' : 'failed']);
    expect(await world.held(wallet.address)).toBe((isPaid ? 890n : 1000n) * million);
    const moved = movedIn(before, await bookOfEuros());
    expect(moved('paid_out')).toBe(isPaid ? 10_000n : 0n);
    const types = (await world.events(wallet.id, 'wallet_action.payout.')).map(({ type }) => type);
    expect(types).toEqual([
      'wallet_action.payout.created',
      `wallet_action.payout.${isPaid ? 'succeeded' : 'failed'}`,
    ]);
    return isKilled;
  }

  test('between the commit and the broadcast of a deposit: paid once', async () => {
    expect(await killPayout(0, 'before broadcast')).toBe(true);
  });

  test.runIf(isLong).each([
    ['paid', 0],
    ['refunded', 1],
  ])(
    'at every point of a payout: %s once',
    async (_, iban) => {
      let point = 1;
      while (await killPayout(iban, point)) point += 1;
      expect(point).toBeGreaterThan(20);
    },
    3_600_000,
  );

  const step = fc.oneof(
    fc.record({
      kind: fc.constant('payout' as const),
      to: fc.nat(2),
      euros: fc.integer({ min: 1, max: 25 }),
    }),
    fc.record({
      kind: fc.constant('deposit' as const),
      cents: fc.integer({ min: 1, max: 50_000 }),
      outcome: fc.constantFrom('completed' as const, 'completed' as const, 'refunded' as const),
    }),
    fc.record({ kind: fc.constant('wait' as const), seconds: fc.integer({ min: 1, max: 20 }) }),
  );
  const life = fc.record({
    steps: fc.array(step, { minLength: 2, maxLength: 8 }),
    killAt: fc.integer({ min: 1, max: 120 }),
  });

  test.runIf(isLong)(
    'on random walks of payouts, deposits and refunds: nothing is made or lost',
    async () => {
      let [walks, kills] = [0, 0];
      await fc.assert(
        fc.asyncProperty(fc.array(life, { minLength: 2, maxLength: 4 }), async (lives) => {
          walks += 1;
          const { wallet, accounts } = await makeCustomer();
          const bankAccount = await bankAccountOf(world, wallet.id);
          const before = await bookOfEuros();
          const all: Order[] = [];
          for (const { steps, killAt } of lives) {
            const orders = steps.map((each): Order => {
              const name = `walk-${walks}-order-${all.length}-of-the-treasury`;
              if (each.kind === 'wait') return each;
              const order: Order =
                each.kind === 'payout'
                  ? {
                      ...{ kind: 'payout', walletId: wallet.id, accountId: accounts[each.to]! },
                      // Euros at 1.10 US dollars, so that no cent is rounded away.
                      ...{ amount: (each.euros * 1.1).toFixed(2), nonce: name },
                    }
                  : {
                      ...{ kind: 'deposit', accountId: bankAccount, amount: (each.cents / 100).toFixed(2) },
                      ...{ reference: name, outcome: each.outcome },
                    };
              all.push(order);
              return order;
            });
            if (await runKilled(orders, killAt)) kills += 1;
          }
          // The clients ask again for everything.
          for (const order of all) {
            const { status } = await carryOut(world, order);
            expect([200, 409]).toContain(status);
          }
          await world.wait(200);
          await world.wait(2000);

          const payouts = all.flatMap((order) => (order.kind === 'payout' ? [order] : []));
          const deposits = all.flatMap((order) => (order.kind === 'deposit' ? [order] : []));
          const reported = await world.events(wallet.id, 'wallet_action.payout.');
          const endedAs = (end: string) =>
            reported.filter(({ type }) => type === `wallet_action.payout.${end}`);
          expect(endedAs('created')).toHaveLength(payouts.length);
          expect(endedAs('succeeded').length + endedAs('failed').length).toBe(payouts.length);
          const paid = endedAs('succeeded').reduce(
            (sum, event) => sum + cents(String(event.source_amount)),
            0n,
          );
          const arrivals = await world.events(wallet.id, 'wallet.deposit_account.deposit_completed');
          const started = await world.events(wallet.id, 'wallet.deposit_account.deposit_started');
          const failed = await world.events(wallet.id, 'wallet.deposit_account.deposit_failed');
          expect(started).toHaveLength(deposits.length);
          expect(arrivals.length + failed.length).toBe(deposits.length);
          const arrived = arrivals.reduce((sum, event) => {
            const { amount } = (event as unknown as { data: { destination: { amount: string } } }).data
              .destination;
            const [whole = '', fraction = ''] = amount.split('.');
            return sum + BigInt(whole + fraction.padEnd(6, '0'));
          }, 0n);
          expect(await world.held(wallet.address)).toBe(1000n * million - paid * 10_000n + arrived);
          const moved = movedIn(before, await bookOfEuros());
          expect(moved('paid_in')).toBe(deposits.reduce((sum, { amount }) => sum + cents(amount), 0n));
          // 1.10 US dollars for a euro.
          expect(moved('paid_out')).toBe((paid * 10n) / 11n);
          expect(moved('capital') + moved('paid_in')).toBe(
            moved('paid_out') + moved('refunded') + moved('fees') + moved('balance'),
          );
        }),
        { numRuns: 40, endOnFailure: true },
      );
      expect(kills).toBeGreaterThan(walks);
    },
    3_600_000,
  );
});
