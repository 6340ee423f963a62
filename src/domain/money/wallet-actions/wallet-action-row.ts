import type { Selectable } from 'kysely';
import type { WalletActionStatus, WalletActionType } from '../../../generated/schemas.ts';
import type { Tables } from '../../tables.ts';

/** A row of `wallet_actions`, columns as they are stored. */
export type WalletActionRow = Omit<Selectable<Tables['wallet_actions']>, 'status' | 'type'> & {
  readonly type: WalletActionType;
  readonly status: WalletActionStatus;
};

/** Every column, for reads of whole rows; never `select *`, which breaks when a migration adds one. */
export const walletActionColumns = [
  'id',
  'app_id',
  'wallet_id',
  'type',
  'status',
  'nonce',
  'reference_id',
  'details',
  'terms',
  'outcome',
  'created_at_ms',
  'ended_at_ms',
] as const satisfies readonly (keyof WalletActionRow)[];
