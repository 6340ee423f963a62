import type { Selectable } from 'kysely';
import type { Tables } from '../../tables.ts';
import type { TransactionStatus } from './transaction-state.ts';

/** A row of `transactions`, columns as they are stored. */
export type TransactionRow = Omit<Selectable<Tables['transactions']>, 'status' | 'claimed_by'> & {
  readonly status: TransactionStatus;
};

/** Every column, for reads of whole rows; never `select *`, which breaks when a migration adds one. */
export const transactionColumns = [
  'id',
  'app_id',
  'wallet_id',
  'caip2',
  'sender',
  'method',
  'status',
  'transaction_hash',
  'user_operation_hash',
  'is_sponsored',
  'reference_id',
  'after_transaction_id',
  'nonce',
  'signed_bytes',
  'transaction_request',
  'moved_token',
  'moved_to',
  'moved_amount',
  'block_number',
  'block_timestamp_seconds',
  'fee_paid',
  'failure_reason',
  'is_slow_told',
  'are_funds_told',
  'is_gas_told',
  'doubt',
  'created_at_ms',
  'updated_at_ms',
  'next_check_at_ms',
] as const satisfies readonly (keyof TransactionRow)[];
