import type { Transaction } from '../../../generated/schemas.ts';
import type { TransactionRow } from './transaction-row.ts';

/** The wire object of a transaction. */
export function transactionView(row: TransactionRow): Transaction {
  return {
    id: row.id,
    wallet_id: row.wallet_id,
    caip2: row.caip2,
    transaction_hash: row.transaction_hash,
    ...(row.user_operation_hash === null ? {} : { user_operation_hash: row.user_operation_hash }),
    status: row.status,
    created_at: row.created_at_ms,
    reference_id: row.reference_id,
    sponsored: row.is_sponsored === 1,
  };
}
