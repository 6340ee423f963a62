import type { FiatProvider, VirtualAccount, VirtualAccountOrder } from '../../../ports/fiat.ts';
import { findCustomer } from './customer-rows.ts';
import { instructionsOf, railsOf } from './instructions.ts';
import { type Currency, isCurrency } from './money.ts';
import { type FiatParts, refuse } from './parts.ts';
import { treasuryFor } from './treasury.ts';

export interface VirtualAccountRow {
  readonly number: number;
  readonly id: string;
  readonly customer_id: string;
  readonly currency: Currency;
  readonly caip2: string;
  readonly asset: string;
  readonly token: string | null;
  readonly decimals: number;
  readonly address: string;
  readonly status: VirtualAccount['status'];
  readonly developer_fee_percent: string;
}

/** Simulates the bank accounts whose deposits are delivered to wallets. */
export function simulateVirtualAccounts(
  parts: FiatParts,
): Pick<FiatProvider, 'openVirtualAccount' | 'virtualAccount' | 'closeVirtualAccount'> {
  const { store, environment } = parts;
  return {
    openVirtualAccount: (order) => open(parts, order),
    async virtualAccount(customerId, id) {
      const row = findVirtualAccount(parts, id);
      return row?.customer_id === customerId ? viewOf(row) : undefined;
    },
    closeVirtualAccount: async (customerId, id) =>
      store.run(
        "update fiat_virtual_accounts set status = 'deactivated' where environment = ? and customer_id = ? and id = ?",
        ...[environment, customerId, id],
      ),
  };
}

export function findVirtualAccount(
  { store, environment }: FiatParts,
  id: string,
): VirtualAccountRow | undefined {
  return store.first('select * from fiat_virtual_accounts where environment = ? and id = ?', environment, id);
}

async function open(parts: FiatParts, order: VirtualAccountOrder) {
  const { store, environment, ids } = parts;
  const { key, customerId, currency, destination, developerFeePercent } = order;
  if (findCustomer(parts, 'id', customerId) === undefined) {
    return refuse('customer', 'the provider has no such customer');
  }
  const treasury = await treasuryFor(parts, destination);
  if (!isCurrency(currency) || treasury === undefined) {
    return refuse('pair', `the provider does not convert \`${currency}\` into this asset on this chain`);
  }
  return store.atomically(() => {
    const find = 'select * from fiat_virtual_accounts where environment = ? and request_key = ?';
    const known = store.first<VirtualAccountRow>(find, environment, key);
    if (known !== undefined) return viewOf(known);
    store.run(
      `insert into fiat_virtual_accounts (environment, id, customer_id, request_key, currency, caip2, asset, token,
         decimals, address, status, developer_fee_percent) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'activated', ?)`,
      ...[environment, ids.uuid(), customerId, key, currency, destination.caip2, destination.asset],
      ...[destination.tokenAddress, destination.decimals, destination.address, developerFeePercent],
    );
    return viewOf(store.first<VirtualAccountRow>(find, environment, key)!);
  });
}

function viewOf({ id, number, status, currency }: VirtualAccountRow): VirtualAccount {
  return {
    ...{ id, status, currency, paymentRails: railsOf(currency) },
    instructions: instructionsOf(currency, number),
  };
}
