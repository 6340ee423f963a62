import type { Selectable, SqlBool } from 'kysely';
import type { Tables } from '../../tables.ts';

/** A row of `wallets`, columns as they are stored. */
export type WalletRow = Selectable<Tables['wallets']>;

/** A wallet read for use, with what most uses need of other tables. */
export interface FoundWallet extends WalletRow {
  /** The digest of its policy's rules; null without a policy. */
  readonly policy_rules_digest: string | null;
  /** Whether an automation is attached to it; SQLite stores 0 and 1. */
  readonly has_automations: SqlBool;
}

/**
 * Every column of `wallets`, for reads of whole rows.
 *
 * NOTE: never `select *`: a prepared statement breaks when a migration adds a column under a running server.
 */
export const walletColumns = [
  'id',
  'app_id',
  'chain_type',
  'address',
  'public_key',
  'display_name',
  'external_id',
  'owner_id',
  'policy_id',
  'additional_signers',
  'entity_type',
  'entity_id',
  'entity_assignment_id',
  'entity_assigned_at_ms',
  'custody_provider',
  'custody_provider_user_id',
  'custody_chain',
  'created_at_ms',
  'exported_at_ms',
  'imported_at_ms',
  'archived_at_ms',
] as const satisfies readonly (keyof WalletRow)[];
