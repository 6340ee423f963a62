import type {
  BankAccountOrder,
  FiatProvider,
  FiatRefusal,
  RegisteredBankAccount,
} from '../../../ports/fiat.ts';
import { findCustomer } from './customer-rows.ts';
import { isCurrency } from './money.ts';
import { type FiatParts, refuse } from './parts.ts';

export interface BankAccountRow {
  readonly id: string;
  readonly customer_id: string;
  readonly last_4: string;
  readonly is_removed: number;
}

/** Simulates the bank accounts that receive payouts. Only the last four characters of their numbers are stored. */
export function simulateBankAccounts(
  parts: FiatParts,
): Pick<FiatProvider, 'registerBankAccount' | 'removeBankAccount'> {
  const { store, environment } = parts;
  return {
    registerBankAccount: async (order) => store.atomically(() => register(parts, order)),
    removeBankAccount: async (customerId, id) =>
      store.run(
        'update fiat_bank_accounts set is_removed = 1 where environment = ? and customer_id = ? and id = ?',
        ...[environment, customerId, id],
      ),
  };
}

export function findBankAccount({ store, environment }: FiatParts, id: string): BankAccountRow | undefined {
  return store.first('select * from fiat_bank_accounts where environment = ? and id = ?', environment, id);
}

function register(parts: FiatParts, order: BankAccountOrder): RegisteredBankAccount | FiatRefusal {
  const { store, environment, ids } = parts;
  if (findCustomer(parts, 'id', order.customerId) === undefined) {
    return refuse('customer', 'the provider has no such customer');
  }
  if (!isCurrency(order.currency)) {
    return refuse('pair', `the provider does not pay out in \`${order.currency}\``);
  }
  const known = store.first<BankAccountRow>(
    'select * from fiat_bank_accounts where environment = ? and request_key = ? and is_removed = 0',
    ...[environment, order.key],
  );
  if (known !== undefined) return viewOf(known, order);
  const number = numberOf(order);
  const row = { id: ids.uuid(), customer_id: order.customerId, last_4: number.slice(-4), is_removed: 0 };
  store.run(
    'delete from fiat_bank_accounts where environment = ? and request_key = ?',
    environment,
    order.key,
  );
  store.run(
    'insert into fiat_bank_accounts values (?, ?, ?, ?, ?, 0)',
    ...[environment, row.id, row.customer_id, order.key, row.last_4],
  );
  return viewOf(row, order);
}

function viewOf(row: BankAccountRow, { account, bankName }: BankAccountOrder): RegisteredBankAccount {
  const last4 = account.type === 'pix' ? undefined : row.last_4;
  return { id: row.id, last4, bankName };
}

function numberOf({ account }: BankAccountOrder): string {
  return account.type === 'pix' ? (account.pix_key ?? account.br_code ?? '') : account.account_number;
}
