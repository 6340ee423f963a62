import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { FiatProvider } from '../../src/ports/fiat.ts';
import { openSimulatedChains } from '../../src/sandbox/simulated/chains/simulated-chains.ts';
import { fixedPrices } from '../../src/sandbox/simulated/prices.ts';

const base = { caip2: 'eip155:8453', chain: 'base', asset: 'usdc', decimals: 6 };
const usdc = { ...base, tokenAddress: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913' };
const wallet = '0x1111111111111111111111111111111111111111';
const stranger = '0x2222222222222222222222222222222222222222';

/**
 * A bank on simulated chains, with a customer, a virtual account, and bank accounts with and without sentinels.
 *
 * @param developerFeePercent of the virtual account.
 */
async function openBank(developerFeePercent = '0', file = ':memory:') {
  let nowMs = Date.UTC(2026, 0, 1);
  const clock = { now: () => nowMs };
  const chains = openSimulatedChains({ file, clock, confirmAfterMs: undefined });
  let drawn = 0;
  const ids = { uuid: () => `00000000-0000-4000-8000-${String(++drawn).padStart(12, '0')}` };
  const { providers, controls } = chains.fiat({
    ids,
    prices: fixedPrices,
    supports: () => true,
    pageOf: (token) => `https://bank.example/${token}`,
    environments: ['sandbox', 'production'],
  });
  const provider = providers.find('bridge', 'sandbox')!;
  const customer = await provider.openCustomer({
    ...{ id: undefined, kind: 'person', reference: 'user', email: 'a@example.com' },
  });
  if ('fault' in customer) throw new Error(customer.message);
  const account = await provider.openVirtualAccount({
    ...{ key: 'account', customerId: customer.id, currency: 'eur' },
    ...{ destination: { ...usdc, address: wallet }, developerFeePercent },
  });
  if ('fault' in account) throw new Error(account.message);
  await chains.fund(usdc.caip2, { address: wallet, tokenAddress: usdc.tokenAddress, rawAmount: 10n ** 12n });
  await chains.fund(usdc.caip2, {
    address: stranger,
    tokenAddress: usdc.tokenAddress,
    rawAmount: 10n ** 12n,
  });
  return {
    ...{ chains, provider, controls, customer, account, clock },
    pass: (ms: number) => {
      nowMs += ms;
    },
  };
}

type Bank = Awaited<ReturnType<typeof openBank>>;

async function openPayout(
  { provider, customer }: Bank,
  { key, last4, ...terms }: { key: string; last4: string; rawAmount: bigint; developerFeePercent: string },
) {
  const account = await provider.registerBankAccount({
    ...{
      key: `bank ${last4}`,
      customerId: customer.id,
      ownerKind: 'person',
      ownerName: 'Alice',
      currency: 'gbp',
    },
    account: { type: 'gb', account_number: `1234${last4}`, sort_code: '123456' },
  });
  if ('fault' in account) throw new Error(account.message);
  return provider.openPayout({
    ...{ key, customerId: customer.id, bankAccountId: account.id, rail: 'faster_payments', currency: 'gbp' },
    ...{ ...terms, source: { ...usdc, address: wallet } },
  });
}

function pay({ chains }: Bank, address: string, rawAmount: bigint, payer = wallet) {
  return chains.fund(usdc.caip2, { address, payer, tokenAddress: usdc.tokenAddress, rawAmount });
}

async function balancesOf({ chains }: Bank, addresses: readonly string[]): Promise<bigint> {
  const chain = chains.find(usdc.caip2)!;
  const sums = await Promise.all(addresses.map((address) => chain.balances(address, [usdc.tokenAddress])));
  return sums.flat().reduce((sum, amount) => sum + amount, 0n);
}

async function drain(provider: FiatProvider) {
  const reports = [];
  let cursor: string | undefined;
  for (;;) {
    const page = await provider.depositsAfter(cursor);
    reports.push(...page.reports);
    cursor = page.cursor;
    if (!page.hasMore) return reports;
  }
}

const cents = (text: string): bigint => BigInt(text.replace('.', ''));

/** Thousandths of a percent. */
const fees = fc.oneof(
  fc.constant(0),
  fc.integer({ min: 0, max: 99_999 }),
  fc.integer({ min: 0, max: 9_999 }),
);
const percentOf = (thousandths: number) => (thousandths / 1000).toFixed(3);
const feeOf = (amount: bigint, thousandths: number) => (amount * BigInt(thousandths)) / 100_000n;

type Step =
  | {
      readonly kind: 'deposit';
      readonly cents: number;
      readonly outcome: 'completed' | 'in_review' | 'refunded';
    }
  | {
      readonly kind: 'payout';
      readonly last4: string;
      readonly raw: number;
      readonly paid: number;
      readonly fee: number;
      readonly late: boolean;
    }
  | { readonly kind: 'close' };

const stepOf: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('deposit' as const),
      cents: fc.integer({ min: 1, max: 1_000_000_00 }),
      outcome: fc.constantFrom('completed' as const, 'in_review' as const, 'refunded' as const),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('payout' as const),
      last4: fc.constantFrom('0000', '0001', '0003', '0004'),
      raw: fc.integer({ min: 2_000_000, max: 500_000_000 }),
      paid: fc.constantFrom(0, 0, 0, 1, -1),
      fee: fees,
      late: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('close' as const) }) },
);

/** What each deposit address of a payout received, and from whom it must not keep anything. */
async function walk(bank: Bank, steps: readonly Step[]) {
  const payouts: {
    readonly id: string;
    readonly address: string;
    readonly sent: bigint;
    readonly net: bigint;
    readonly fee: bigint;
  }[] = [];
  for (const [index, step] of steps.entries()) {
    if (step.kind === 'close') {
      await bank.provider.closeVirtualAccount(bank.customer.id, bank.account.id);
    } else if (step.kind === 'deposit') {
      const amount = `${Math.floor(step.cents / 100)}.${String(step.cents % 100).padStart(2, '0')}`;
      const deposit = { accountId: bank.account.id, amount, reference: `r${index}`, outcome: step.outcome };
      const first = await bank.controls.receive('sandbox', deposit);
      expect(await bank.controls.receive('sandbox', deposit)).toEqual(first);
    } else {
      const order = { key: `payout ${index}`, last4: step.last4, rawAmount: BigInt(step.raw) };
      const opened = await openPayout(bank, { ...order, developerFeePercent: percentOf(step.fee) });
      // 1.25 dollars for a pound.
      const worth = BigInt(step.raw) / 12_500n;
      const fee = feeOf(worth, step.fee);
      expect('fault' in opened).toBe(worth - fee < 100n);
      if ('fault' in opened) continue;
      if (step.late) bank.pass(601_000);
      const sent = BigInt(step.raw + step.paid);
      await pay(bank, opened.depositAddress, sent);
      await pay(bank, opened.depositAddress, 5n, stranger);
      payouts.push({ id: opened.id, address: opened.depositAddress, sent, net: worth - fee, fee });
    }
    bank.pass(700);
    await drain(bank.provider);
  }
  bank.pass(60_000);
  return payouts;
}

test('whatever is paid in and out, the books balance and each payout is paid or refunded, once', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(stepOf, { maxLength: 12 }), fees, async (steps, accountFee) => {
      const bank = await openBank(percentOf(accountFee));
      const before = await balancesOf(bank, [wallet, stranger]);
      const payouts = await walk(bank, steps);
      const reports = await drain(bank.provider);
      let kept = 0n;
      const expected = { eur: { fees: 0n, paidOut: 0n }, gbp: { fees: 0n, paidOut: 0n } };
      for (const { id, address, sent, net, fee } of payouts) {
        const payout = await bank.provider.payout(id);
        // A second look changes nothing.
        expect(await bank.provider.payout(id)).toEqual(payout);
        const held = await balancesOf(bank, [address]);
        kept += held;
        expect(held).toBe(payout?.refund === undefined ? sent : 0n);
        expect(payout?.paidAmount === undefined || payout.refund === undefined).toBe(true);
        if (payout?.paidAmount === undefined) continue;
        expect(cents(payout.paidAmount)).toBe(net);
        expected.gbp.fees += fee;
        expected.gbp.paidOut += net;
      }
      for (const { state, amount, rawOutput } of reports) {
        if (state !== 'delivered') continue;
        const fee = feeOf(cents(amount), accountFee);
        expected.eur.fees += fee;
        // A quarter of a percent is the bank's; a cent is 11,000 millionths of a dollar.
        expect(rawOutput).toBe((cents(amount) - (cents(amount) * 25n) / 10_000n - fee) * 11_000n);
        expect(rawOutput).toBeGreaterThan(0n);
      }
      const delivered = reports
        .filter(({ state }) => state === 'delivered')
        .reduce((sum, { rawOutput = 0n }) => sum + rawOutput, 0n);
      expect(await balancesOf(bank, [wallet, stranger])).toBe(before + delivered - kept);
      for (const book of await bank.controls.books()) {
        const left = cents(book.capital) + cents(book.paid_in);
        const gone = cents(book.paid_out) + cents(book.refunded);
        expect(left).toBe(gone + cents(book.fees) + cents(book.developer_fees) + cents(book.balance));
        const { fees: developerFees, paidOut } = expected[book.currency as 'eur' | 'gbp'];
        expect(cents(book.developer_fees)).toBe(developerFees);
        expect(cents(book.paid_out)).toBe(paidOut);
      }
      await bank.chains.close();
    }),
    { numRuns: process.env.TEST_LONG === undefined ? 25 : 2000 },
  );
});

test('the environments keep separate books', async () => {
  const bank = await openBank();
  await bank.controls.receive('sandbox', {
    ...{ accountId: bank.account.id, amount: '100.00', reference: 'r', outcome: 'completed' },
  });
  const elsewhere = {
    accountId: bank.account.id,
    amount: '100.00',
    reference: 'r',
    outcome: 'completed',
  } as const;
  expect(await bank.controls.receive('production', elsewhere)).toBeUndefined();
  const books = await bank.controls.books();
  expect(books.map(({ environment, currency, paid_in }) => [environment, currency, paid_in])).toEqual([
    ['sandbox', 'eur', '100.00'],
  ]);
  await bank.chains.close();
});

test('a deposit of 100 euros less a quarter percent arrives at 1.10 dollars each', async () => {
  const bank = await openBank();
  await bank.controls.receive('sandbox', {
    ...{ accountId: bank.account.id, amount: '100.00', reference: 'r', outcome: 'completed' },
  });
  bank.pass(2000);
  const reports = await drain(bank.provider);
  expect(reports.map(({ state }) => state)).toEqual(['received', 'delivering', 'delivered']);
  // (100.00 - 0.25) * 1.1 dollars, in millionths.
  expect(reports.at(-1)?.rawOutput).toBe(109_725_000n);
  await bank.chains.close();
});

test('accounts and payouts of a bank without fees of apps go on without them', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'custos-bank-'));
  const file = join(folder, 'chains.db');
  const order = { key: 'payout', last4: '0000', rawAmount: 25_000_000n, developerFeePercent: '0' };
  try {
    const before = await openBank('0', file);
    const opened = await openPayout(before, order);
    await before.chains.close();
    const earlier = new Sqlite(file);
    earlier.exec(`alter table fiat_virtual_accounts drop column developer_fee_percent;
      alter table fiat_payouts drop column developer_fee;
      drop table evm_code; drop table evm_storage; drop table evm_receipts; drop table reorganizations;
      drop table abis; drop table solana_accounts; drop table solana_receipts; drop table solana_mentions;
      drop index token_accounts_by_mint; drop table block_times; alter table chains drop column next_seconds; pragma user_version = 6;`);
    earlier.close();
    const bank = await openBank('0', file);
    expect(bank.account).toEqual(before.account);
    expect(await openPayout(bank, order)).toEqual(opened);
    if ('fault' in opened) throw new Error(opened.message);
    await pay(bank, opened.depositAddress, opened.rawAmount);
    await bank.controls.receive('sandbox', {
      ...{ accountId: bank.account.id, amount: '100.00', reference: 'r', outcome: 'completed' },
    });
    await bank.provider.payout(opened.id);
    bank.pass(60_000);
    expect((await drain(bank.provider)).at(-1)?.rawOutput).toBe(109_725_000n);
    expect(await bank.provider.payout(opened.id)).toMatchObject({ paidAmount: '20.00' });
    const books = await bank.controls.books();
    expect(books.map((book) => book.developer_fees)).toEqual(['0.00', '0.00']);
    await bank.chains.close();
  } finally {
    rmSync(folder, { recursive: true });
  }
});
