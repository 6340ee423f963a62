import type { FiatEnvironment } from '../../../ports/fiat.ts';
import type { ChainStore } from '../chains/store.ts';
import { type Currency, textOf } from './money.ts';

/**
 * INVARIANT: in each environment and currency, capital + paid in = paid out + refunded + fees + developer fees +
 * balance. `balance` is stored and not computed from the other values, so that tests can compare them.
 */

type Account = 'capital' | 'paid_in' | 'paid_out' | 'refunded' | 'fees' | 'developer_fees' | 'balance';

/** The bank's initial money in each currency, in cents. It pays from this money as long as it has no deposits. */
const CAPITAL = 1_000_000_000_00n;

interface Entry {
  readonly environment: FiatEnvironment;
  readonly currency: Currency;
  readonly cents: bigint;
}

/** Records money that enters or leaves the bank. */
export function book(
  store: ChainStore,
  account: Exclude<Account, 'capital' | 'balance'>,
  entry: Entry,
): void {
  const known = store.first(
    "select 1 from fiat_books where environment = ? and currency = ? and account = 'capital'",
    ...[entry.environment, entry.currency],
  );
  if (known === undefined) {
    add(store, 'capital', { ...entry, cents: CAPITAL });
    add(store, 'balance', { ...entry, cents: CAPITAL });
  }
  add(store, account, entry);
  add(store, 'balance', account === 'paid_in' ? entry : { ...entry, cents: -entry.cents });
}

function add(store: ChainStore, account: Account, { environment, currency, cents }: Entry): void {
  const row = store.first<{ amount: string }>(
    'select amount from fiat_books where environment = ? and currency = ? and account = ?',
    ...[environment, currency, account],
  );
  store.run(
    'insert or replace into fiat_books values (?, ?, ?, ?)',
    ...[environment, currency, account, String(BigInt(row?.amount ?? 0) + cents)],
  );
}

/** The books of one currency, as decimal strings. */
export type Book = { readonly environment: FiatEnvironment; readonly currency: string } & Readonly<
  Record<Account, string>
>;

export function booksOf(store: ChainStore): readonly Book[] {
  const rows = store.all<{
    environment: FiatEnvironment;
    currency: string;
    account: Account;
    amount: string;
  }>('select * from fiat_books order by environment, currency, account');
  const byCurrency = Map.groupBy(rows, ({ environment, currency }) => `${environment} ${currency}`);
  return [...byCurrency.values()].map((group) => {
    const amountOf = (account: Account): string =>
      textOf(BigInt(group.find((row) => row.account === account)?.amount ?? 0));
    const { environment, currency } = group[0]!;
    return {
      ...{ environment, currency, capital: amountOf('capital'), paid_in: amountOf('paid_in') },
      ...{ paid_out: amountOf('paid_out'), refunded: amountOf('refunded'), fees: amountOf('fees') },
      ...{ developer_fees: amountOf('developer_fees'), balance: amountOf('balance') },
    };
  });
}
