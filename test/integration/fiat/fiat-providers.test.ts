import { describe, expect, test } from 'vitest';
import type {
  BankAccountOrder,
  CustomerSnapshot,
  FiatDepositReport,
  FiatProvider,
  FiatRefusal,
} from '../../../src/ports/fiat.ts';
import { type BankWorld, openBankWorld, openBridgeWorld } from '../../support/fiat/bank-world.ts';
import { testUsdc } from '../../support/fiat/bridge-handlers.ts';

const wallet = '0x1111111111111111111111111111111111111111';
const png =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

/** A provider in front of a bank whose customers and money a test controls. */
interface Opened extends AsyncDisposable {
  readonly world: BankWorld;
  readonly provider: FiatProvider;
  /** What the provider and the adapter did that their document does not allow. */
  readonly faults: readonly string[];
}

const adapters: Readonly<Record<string, () => Promise<Opened>>> = {
  async 'the simulated bank'() {
    const world = openBankWorld();
    return {
      world,
      provider: world.bank,
      faults: [],
      [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
    };
  },
  async 'a provider over REST'() {
    const world = openBankWorld();
    const { provider, service } = await openBridgeWorld(world);
    return {
      ...{ world, provider, faults: service.faults },
      async [Symbol.asyncDispose]() {
        await service[Symbol.asyncDispose]();
        await world[Symbol.asyncDispose]();
      },
    };
  },
};

function accepted<T extends object>(answer: T | FiatRefusal): T {
  if ('fault' in answer) throw new Error(answer.message);
  return answer;
}

const person = { id: undefined, kind: 'person', reference: 'app/user/1' } as const;

async function openCustomer({ provider, world }: Opened): Promise<CustomerSnapshot> {
  const { id } = accepted(await provider.openCustomer({ ...person, email: 'alice@example.com' }));
  await world.controls.decide('sandbox', id, { outcome: 'approved' });
  return (await provider.customer(id))!;
}

const data = {
  first_name: 'Alice',
  last_name: 'Example',
  date_of_birth: '1990-02-03',
  email: 'alice@example.com',
  nationalities: ['DEU'],
  residential_address: { street_line_1: 'Weg 12', city: 'Berlin', postal_code: '10115', country: 'DEU' },
  identifying_information: [{ type: 'passport', issuing_country: 'DEU', number: 'C01X', image_front: png }],
};

const address = { street_line_1: '1 Example Street', city: 'Springfield', state: 'CA', country: 'USA' };
const accounts: readonly (readonly [string, BankAccountOrder['account'], last4: string | undefined])[] = [
  ['usd', { type: 'us', routing_number: '021000021', account_number: '000123456789' }, '6789'],
  [
    'eur',
    { type: 'iban', account_number: 'DE89370400440532013000', bic: 'COBADEFFXXX', country: 'DEU' },
    '3000',
  ],
  ['gbp', { type: 'gb', account_number: '12345678', sort_code: '123456' }, '5678'],
  ['brl', { type: 'pix', pix_key: 'alice@example.com', document_number: '52998224725' }, undefined],
  [
    'usd',
    {
      ...{ type: 'swift', account_number: '0011223344', bic: 'COBADEFFXXX', category: 'supplier' },
      ...{ purpose_of_funds: ['invoice_for_goods_and_services'], short_business_description: 'Tools' },
    },
    '3344',
  ],
];

function bankOrder(customerId: string, [currency, account]: (typeof accounts)[number]): BankAccountOrder {
  const key = `bank ${currency} ${account.type}`;
  return { key, customerId, ownerKind: 'person', ownerName: 'Alice Example', currency, account, address };
}

async function drain(provider: FiatProvider, from?: string) {
  const reports: FiatDepositReport[] = [];
  let cursor = from;
  for (;;) {
    const page = await provider.depositsAfter(cursor);
    reports.push(...page.reports);
    cursor = page.cursor;
    if (!page.hasMore) return { reports, cursor };
  }
}

/** A payout after the time that all of its steps take. */
async function ended({ provider, world }: Opened, id: string) {
  for (let step = 0; step < 5; step += 1) {
    await provider.payout(id);
    world.pass(2000);
  }
  return provider.payout(id);
}

describe.each(Object.entries(adapters))('%s', (_name, open) => {
  test('has one customer for each reference, with links to its pages', async () => {
    await using opened = await open();
    const { provider } = opened;
    const first = accepted(await provider.openCustomer({ ...person, email: 'alice@example.com' }));
    const again = accepted(await provider.openCustomer({ ...person, email: 'other@example.com' }));
    expect(again.id).toBe(first.id);
    expect(first).toMatchObject({ status: 'not_started', terms: { status: 'pending' } });
    const other = await provider.openCustomer({
      ...person,
      reference: 'app/user/2',
      email: 'alice@example.com',
    });
    expect(accepted(other).id).not.toBe(first.id);
    const terms = await provider.termsLink(first.id, 'https://app.example/done');
    const verification = await provider.verificationLink(first.id, {
      redirectUri: 'https://app.example/done',
    });
    expect([terms, verification].every((link) => link?.startsWith('https://'))).toBe(true);
    expect(await provider.customer('unknown')).toBeUndefined();
    expect(await provider.termsLink('unknown')).toBeUndefined();
    expect(await provider.verificationLink('unknown', {})).toBeUndefined();
    expect(opened.faults).toEqual([]);
  });

  test('verifies who submits data and has accepted the terms', async () => {
    await using opened = await open();
    const { provider, world } = opened;
    const submitted = accepted(
      await provider.submit({
        ...person,
        data,
        clientAgreementId: 'agreement',
        endorsements: ['base', 'sepa'],
      }),
    );
    expect(submitted).toMatchObject({ status: 'under_review', terms: { status: 'approved' } });
    world.pass(2000);
    expect(await provider.customer(submitted.id)).toMatchObject({
      ...{ id: submitted.id, status: 'active', verification: { status: 'approved' } },
      capabilities: { payin_fiat: 'active', payout_fiat: 'active' },
      endorsements: [
        { name: 'base', status: 'approved', missing: null },
        { name: 'sepa', status: 'approved', missing: null },
      ],
    });
    expect(opened.faults).toEqual([]);
  });

  test('says what is missing, and why a customer is rejected', async () => {
    await using opened = await open();
    const { provider, world } = opened;
    const { id } = accepted(await provider.submit({ ...person, data: { ...data, last_name: 'Incomplete' } }));
    world.pass(2000);
    expect(await provider.customer(id)).toMatchObject({
      ...{ status: 'incomplete', requirementsDue: ['proof_of_address'] },
      endorsements: [{ name: 'base', status: 'incomplete', missing: ['proof_of_address'] }],
    });
    accepted(await provider.submit({ ...person, id, data: { last_name: 'Denied' } }));
    world.pass(2000);
    const rejected = await provider.customer(id);
    expect(rejected).toMatchObject({ status: 'rejected', verification: { status: 'rejected' } });
    expect(rejected?.verification.rejectionReasons).toEqual(['the submitted data could not be verified']);
    expect(opened.faults).toEqual([]);
  });

  test('points at the data that it refuses, without repeating it', async () => {
    await using opened = await open();
    const { provider } = opened;
    const document = { type: 'passport', issuing_country: 'DEU', number: 'REFUSED' };
    const refusal = await provider.submit({
      ...person,
      data: { ...data, identifying_information: [document] },
    });
    expect(refusal).toMatchObject({ fault: 'data', pointer: '/identifying_information/0/number' });
    expect(JSON.stringify(refusal)).not.toMatch(/REFUSED|Alice|DE89/);
    expect(opened.faults).toEqual([]);
  });

  test('registers a bank account of each type once, and forgets removed ones', async () => {
    await using opened = await open();
    const { provider } = opened;
    const { id: customerId } = await openCustomer(opened);
    for (const each of accounts) {
      const order = bankOrder(customerId, each);
      const account = accepted(await provider.registerBankAccount(order));
      expect(account.last4).toBe(each[2]);
      expect(accepted(await provider.registerBankAccount(order)).id).toBe(account.id);
      await provider.removeBankAccount(customerId, account.id);
      await provider.removeBankAccount(customerId, account.id);
    }
    const stranger = await provider.registerBankAccount(bankOrder('unknown', accounts[2]!));
    expect(stranger).toMatchObject({ fault: 'customer' });
    expect(opened.faults).toEqual([]);
  });

  test('opens an account whose deposits go to the wallet, and closes it', async () => {
    await using opened = await open();
    const { provider } = opened;
    const { id: customerId } = await openCustomer(opened);
    const order = {
      key: 'account',
      customerId,
      currency: 'eur',
      destination: { ...testUsdc, address: wallet },
      developerFeePercent: '0',
    };
    const account = accepted(await provider.openVirtualAccount(order));
    expect(account).toMatchObject({ status: 'activated', currency: 'eur', paymentRails: ['sepa'] });
    expect(account.instructions?.iban).toMatch(/^DE\d{20}$/);
    expect(accepted(await provider.openVirtualAccount(order))).toEqual(account);
    expect(await provider.virtualAccount(customerId, account.id)).toEqual(account);
    expect(await provider.virtualAccount('unknown', account.id)).toBeUndefined();
    await provider.closeVirtualAccount(customerId, account.id);
    await provider.closeVirtualAccount(customerId, account.id);
    expect(await provider.virtualAccount(customerId, account.id)).toMatchObject({ status: 'deactivated' });
    const unserved = {
      ...order,
      key: 'other',
      destination: { ...testUsdc, asset: 'unheard_of', address: wallet },
    };
    expect(await provider.openVirtualAccount(unserved)).toMatchObject({ fault: 'pair' });
    expect(
      await provider.openVirtualAccount({ ...order, key: 'third', customerId: 'unknown' }),
    ).toMatchObject({ fault: 'customer' });
    expect(opened.faults).toEqual([]);
  });

  test('reports what happens to deposits in order, from any position and without gaps', async () => {
    await using opened = await open();
    const { provider, world } = opened;
    const { id: customerId } = await openCustomer(opened);
    const account = accepted(
      await provider.openVirtualAccount({
        ...{ key: 'account', customerId, currency: 'eur', destination: { ...testUsdc, address: wallet } },
        developerFeePercent: '0',
      }),
    );
    const receive = (reference: string, outcome: 'completed' | 'refunded') =>
      world.controls.receive('sandbox', { accountId: account.id, amount: '100.00', reference, outcome });
    await receive('first', 'completed');
    await receive('second', 'refunded');
    world.pass(5000);
    const { reports, cursor } = await drain(provider);
    world.pass(5000);
    const later = await drain(provider, cursor);
    const [first, second] = [...new Set(reports.map(({ depositId }) => depositId))];
    const statesOf = (id: string | undefined) =>
      [...reports, ...later.reports].filter(({ depositId }) => depositId === id).map(({ state }) => state);
    expect(statesOf(first)).toEqual(['received', 'delivering', 'delivered']);
    expect(statesOf(second).at(-1)).toBe('refunded');
    const delivered = [...reports, ...later.reports].find(({ state }) => state === 'delivered');
    expect(delivered).toMatchObject({
      virtualAccountId: account.id,
      amount: '100.00',
      currency: 'eur',
      paymentRail: 'sepa',
    });
    const arrived = await world.chains.find(testUsdc.caip2)!.balances(wallet, [testUsdc.tokenAddress]);
    expect(arrived[0]).toBeGreaterThan(0n);
    expect(delivered?.transactionHash).toMatch(/^0x[0-9a-f]{64}$/);
    world.pass(60_000);
    expect(await drain(provider, later.cursor)).toEqual({ reports: [], cursor: later.cursor });
    // More than a page, once from the beginning and once from the position before.
    for (let index = 0; index < 120; index += 1) await receive(`many ${index}`, 'completed');
    world.pass(6000);
    const many = await drain(provider, later.cursor);
    expect(many.reports.filter(({ state }) => state === 'received')).toHaveLength(120);
    expect(new Set(many.reports.map(({ depositId }) => depositId)).size).toBe(120);
    world.pass(60_000);
    const whole = await drain(provider);
    expect(whole.reports.slice(0, reports.length)).toEqual(reports);
    expect(opened.faults).toEqual([]);
  });

  test('pays out what was deposited exactly, and refunds what it cannot pay', async () => {
    await using opened = await open();
    const { provider, world } = opened;
    const { id: customerId } = await openCustomer(opened);
    const [, , gb] = accounts;
    const good = accepted(await provider.registerBankAccount(bankOrder(customerId, gb!)));
    const returning = accepted(
      await provider.registerBankAccount({
        ...{ ...bankOrder(customerId, gb!), key: 'returning' },
        account: { type: 'gb', account_number: '12340003', sort_code: '123456' },
      }),
    );
    const order = (key: string, bankAccountId: string) => ({
      ...{ key, customerId, bankAccountId, rail: 'faster_payments', currency: 'gbp' },
      ...{ rawAmount: 25_000_001n, source: { ...testUsdc, address: wallet }, developerFeePercent: '0' },
    });
    const opening = accepted(await provider.openPayout(order('payout', good.id)));
    expect(opening.rawAmount).toBe(25_000_001n);
    expect(opening.expiresAtSeconds).toBeGreaterThan(world.clock.now() / 1000 + 60);
    expect(accepted(await provider.openPayout(order('payout', good.id)))).toEqual(opening);
    expect(await provider.payout(opening.id)).toMatchObject({ state: 'awaiting_funds' });
    await world.pay(wallet, opening.depositAddress, opening.rawAmount);
    expect(await ended(opened, opening.id)).toMatchObject({
      state: 'payment_processed',
      paidAmount: '20.00',
    });
    await provider.cancelPayout(opening.id);
    expect(await provider.payout(opening.id)).toMatchObject({ state: 'payment_processed' });

    const doomed = accepted(await provider.openPayout(order('doomed', returning.id)));
    await world.pay(wallet, doomed.depositAddress, doomed.rawAmount);
    expect(await ended(opened, doomed.id)).toMatchObject({ state: 'refunded' });

    const dropped = accepted(await provider.openPayout(order('dropped', good.id)));
    await provider.cancelPayout(dropped.id);
    await provider.cancelPayout(dropped.id);
    expect(await provider.payout(dropped.id)).toMatchObject({ state: 'canceled' });
    expect(await provider.payout('unknown')).toBeUndefined();

    await provider.removeBankAccount(customerId, good.id);
    expect(await provider.openPayout(order('removed', good.id))).toMatchObject({ fault: 'customer' });
    const little = { ...order('little', returning.id), rawAmount: 1n };
    expect(await provider.openPayout(little)).toMatchObject({ fault: 'data' });
    const unserved = {
      ...order('unserved', returning.id),
      source: { ...testUsdc, asset: 'unheard_of', address: wallet },
    };
    expect(await provider.openPayout(unserved)).toMatchObject({ fault: 'pair' });
    expect(opened.faults).toEqual([]);
  });

  test('keeps the fee of the app from deposits and payouts', async () => {
    await using opened = await open();
    const { provider, world } = opened;
    const { id: customerId } = await openCustomer(opened);
    const bookOf = async (currency: string) =>
      (await world.controls.books()).find((book) => book.currency === currency);
    const account = accepted(
      await provider.openVirtualAccount({
        ...{ key: 'account', customerId, currency: 'eur', developerFeePercent: '1.25' },
        destination: { ...testUsdc, address: wallet },
      }),
    );
    await world.controls.receive('sandbox', {
      ...{ accountId: account.id, amount: '99.99', reference: 'r', outcome: 'completed' },
    });
    world.pass(5000);
    await drain(provider);
    // 1.25 % of 99.99 is 1.249875, and 0.25 % is 0.249975: 98.51 euros are left, at 1.10 dollars.
    expect(await bookOf('eur')).toMatchObject({ paid_in: '99.99', fees: '0.24', developer_fees: '1.24' });
    expect(await world.chains.find(testUsdc.caip2)!.balances(wallet, [testUsdc.tokenAddress])).toEqual([
      108_361_000n,
    ]);

    const bank = accepted(await provider.registerBankAccount(bankOrder(customerId, accounts[2]!)));
    const order = {
      ...{ key: 'payout', customerId, bankAccountId: bank.id, rail: 'faster_payments', currency: 'gbp' },
      ...{ rawAmount: 25_000_000n, source: { ...testUsdc, address: wallet }, developerFeePercent: '12.34' },
    };
    const opening = accepted(await provider.openPayout(order));
    expect(opening.rawAmount).toBe(25_000_000n);
    await world.pay(wallet, opening.depositAddress, opening.rawAmount);
    // 25 dollars are 20 pounds, of which 12.34 % is 2.468. The fee of 3.085 dollars is 3.08 over REST.
    expect(await ended(opened, opening.id)).toMatchObject({ paidAmount: '17.54' });
    expect(await bookOf('gbp')).toMatchObject({ paid_out: '17.54', developer_fees: '2.46' });
    // What is left must be enough to pay out.
    const little = { ...order, key: 'little', developerFeePercent: '96' };
    expect(await provider.openPayout(little)).toMatchObject({ fault: 'data' });
    const enough = { ...order, key: 'enough', developerFeePercent: '95' };
    expect(accepted(await provider.openPayout(enough))).toBeDefined();
    expect(opened.faults).toEqual([]);
  });
});
