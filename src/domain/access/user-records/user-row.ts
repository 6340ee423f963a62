import type { Selectable } from 'kysely';
import type { Tables } from '../../tables.ts';

/** A row of `users`, columns as they are stored. */
export type UserRow = Selectable<Tables['users']>;

/** A row of `linked_accounts`, columns as they are stored. */
export type LinkedAccountRow = Selectable<Tables['linked_accounts']>;

/** The fields of an embedded wallet that a linked account shows. */
export type AccountWallet = Pick<
  Selectable<Tables['wallets']>,
  'address' | 'chain_type' | 'public_key' | 'additional_signers' | 'imported_at_ms'
>;

/** A linked account; `wallet` is set for embedded wallets. */
export interface StoredAccount extends LinkedAccountRow {
  readonly wallet: AccountWallet | null;
}

/** A user with the linked accounts in the order in which they were linked. */
export interface StoredUser {
  readonly row: UserRow;
  readonly linkedAccounts: readonly StoredAccount[];
}

/** Every column of `users`, for reads of whole rows. */
export const userColumns = [
  'id',
  'app_id',
  'custom_metadata',
  'has_accepted_terms',
  'is_guest',
  'mfa_methods',
  'frozen_at_ms',
  'created_at_ms',
] as const satisfies readonly (keyof UserRow)[];

/** Every column of `linked_accounts`, for reads of whole rows. */
export const linkedAccountColumns = [
  'id',
  'app_id',
  'user_id',
  'position',
  'type',
  'subject',
  'username',
  'wallet_id',
  'details',
  'verified_at_ms',
  'first_verified_at_ms',
  'latest_verified_at_ms',
  'usable_at_ms',
] as const satisfies readonly (keyof LinkedAccountRow)[];
