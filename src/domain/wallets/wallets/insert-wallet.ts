import type { ColumnDataType, Selectable } from 'kysely';
import { ApiError } from '../../../errors.ts';
import type { AdditionalSignerInput, WalletChainType } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { prepareInsertPair } from '../../../storage/insert-pair.ts';
import { prepareQuery } from '../../prepared-query.ts';
import type { Tables } from '../../tables.ts';
import type { KeyOfWallet } from './create-wallet-key.ts';
import { storeSigners } from './store-signers.ts';
import { type WalletRow, walletColumns } from './wallet-row.ts';

// HOT: the entity manager takes 2.5 (SQLite) and 3.1 (PostgreSQL) times the CPU per created wallet (bench `sqlite`,
// `postgres`).

export interface NewWalletRow {
  readonly chainType: WalletChainType;
  readonly ownerId: string | null;
  readonly displayName?: string | undefined;
  readonly externalId?: string | undefined;
  readonly policyIds?: readonly string[] | undefined;
  readonly additionalSigners?: AdditionalSignerInput | undefined;
  readonly entity?: { readonly id: string; readonly type: string } | undefined;
  /** Set for imported keys. */
  readonly importedAtMs?: number | undefined;
}

type WalletKeyRow = Selectable<Tables['wallet_keys']>;

/** The columns of `wallet_keys`. */
const walletKeyTypes = {
  wallet_id: 'text',
  sealed_secret: 'bytea',
  wrapped_data_key: 'bytea',
  master_key_id: 'text',
  entropy_type: 'text',
  derivation_path: 'text',
  wallet_index: 'integer',
  authority: 'text',
} as const satisfies Record<keyof WalletKeyRow, ColumnDataType>;

const insertRowAndKey = prepareInsertPair<WalletRow, WalletKeyRow>({
  first: { table: 'wallets', columns: walletColumns },
  second: { table: 'wallet_keys', types: walletKeyTypes },
});

const insertRow = prepareQuery<WalletRow>((database, row) =>
  database
    .insertInto('wallets')
    .values(Object.fromEntries(walletColumns.map((column) => [column, row[column]])) as WalletRow)
    .onConflict((conflict) => conflict.doNothing()),
);

/**
 * Stores a wallet and its sealed key.
 *
 * @throws ApiError resource_conflict when the app has a wallet with this external id; of several concurrent
 * requests exactly one succeeds.
 */
export async function insertWallet(
  context: OperationContext,
  wallet: NewWalletRow,
  key: KeyOfWallet,
): Promise<WalletRow> {
  const row = newWalletRow(context, wallet, key);
  const isStored = await insertRowAndKey(context.em, row, {
    wallet_id: row.id,
    sealed_secret: key.sealed.sealedSecret,
    wrapped_data_key: key.sealed.wrappedDataKey,
    master_key_id: key.sealed.masterKeyId,
    entropy_type: key.entropyType,
    derivation_path: key.derivationPath,
    wallet_index: key.walletIndex,
    authority: key.authority === undefined ? null : JSON.stringify(key.authority),
  });
  if (!isStored) throw externalIdTaken(wallet.externalId);
  await storeSigners(context, row.id, wallet.additionalSigners ?? []);
  return row;
}

/** 409 for an external id that another wallet of the app has. */
export function externalIdTaken(externalId: string | undefined): ApiError {
  return new ApiError('resource_conflict', `a wallet with the external id \`${externalId}\` already exists`, {
    headers: { 'x-should-retry': 'false' },
  });
}

/** Stores a wallet whose key is held by a custodian. */
export async function insertWalletRow(
  context: OperationContext,
  row: WalletRow,
  signers: AdditionalSignerInput | undefined,
): Promise<WalletRow> {
  if ((await insertRow(context.em, row)).numAffectedRows === 0n) throw externalIdTaken(row.external_id ?? '');
  await storeSigners(context, row.id, signers ?? []);
  return row;
}

/** The row of a new wallet; `key` has its id, unless it is still to be drawn, its address and public key. */
export function newWalletRow(
  context: Pick<OperationContext, 'ids' | 'app' | 'nowMs'>,
  wallet: NewWalletRow,
  key: Pick<KeyOfWallet, 'address' | 'publicKey'> & { readonly walletId?: string },
): WalletRow {
  const entityAssignment =
    wallet.entity === undefined ? null : { id: context.ids.cuid2(), atMs: context.nowMs };
  return {
    id: key.walletId ?? context.ids.cuid2(),
    app_id: context.app.id,
    chain_type: wallet.chainType,
    address: key.address,
    public_key: key.publicKey,
    display_name: wallet.displayName ?? null,
    external_id: wallet.externalId ?? null,
    owner_id: wallet.ownerId,
    policy_id: wallet.policyIds?.[0] ?? null,
    additional_signers: JSON.stringify(wallet.additionalSigners ?? []),
    entity_type: wallet.entity?.type ?? null,
    entity_id: wallet.entity?.id ?? null,
    entity_assignment_id: entityAssignment?.id ?? null,
    entity_assigned_at_ms: entityAssignment?.atMs ?? null,
    custody_provider: null,
    custody_provider_user_id: null,
    custody_chain: null,
    created_at_ms: context.nowMs,
    exported_at_ms: null,
    imported_at_ms: wallet.importedAtMs ?? null,
    archived_at_ms: null,
  };
}
