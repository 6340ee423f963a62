import type { QueryCreator, Selectable } from 'kysely';
import { ApiError } from '../../../errors.ts';
import type { AdditionalSignerInput, WalletChainType } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { hasRowLocks } from '../../../storage/locks.ts';
import { prepareQuery } from '../../prepared-query.ts';
import type { Tables } from '../../tables.ts';
import type { WalletKeyMaterial } from './generate-wallet-key.ts';
import { storeSigners } from './store-signers.ts';
import { type WalletRow, walletColumns } from './wallet-row.ts';

export interface NewWalletRow {
  readonly chainType: WalletChainType;
  readonly ownerId: string | null;
  readonly displayName?: string | undefined;
  readonly externalId?: string | undefined;
  readonly policyIds?: readonly string[] | undefined;
  readonly additionalSigners?: AdditionalSignerInput | undefined;
  readonly entity?: { readonly id: string; readonly type: string } | undefined;
  /** Set when the key came from outside. */
  readonly importedAtMs?: number | undefined;
}

type WalletKeyRow = Selectable<Tables['wallet_keys']>;

const insertRow = prepareQuery<WalletRow>((database, row) => insertInto(database, row));

const insertKey = prepareQuery<WalletKeyRow>((database, key) =>
  database.insertInto('wallet_keys').values({
    wallet_id: key.wallet_id,
    sealed_secret: key.sealed_secret,
    wrapped_data_key: key.wrapped_data_key,
    master_key_id: key.master_key_id,
    entropy_type: key.entropy_type,
    derivation_path: key.derivation_path,
    wallet_index: key.wallet_index,
  }),
);

/** Both in one round trip, which is half of what a wallet costs PostgreSQL. No wallet, no key. */
const insertRowAndKey = prepareQuery<WalletRow & WalletKeyRow>((database, row) =>
  database
    .with('made', (inner) => insertInto(inner, row).returning('id'))
    .insertInto('wallet_keys')
    .columns([
      'wallet_id',
      'sealed_secret',
      'wrapped_data_key',
      'master_key_id',
      'entropy_type',
      'derivation_path',
      'wallet_index',
    ])
    .expression((inner) =>
      inner
        .selectFrom('made')
        .select(({ ref, cast, val }) => [
          ref('made.id').as('wallet_id'),
          cast<Buffer>(val(row.sealed_secret), 'bytea').as('sealed_secret'),
          cast<Buffer>(val(row.wrapped_data_key), 'bytea').as('wrapped_data_key'),
          cast<string>(val(row.master_key_id), 'text').as('master_key_id'),
          cast<string>(val(row.entropy_type), 'text').as('entropy_type'),
          cast<string>(val(row.derivation_path), 'text').as('derivation_path'),
          cast<number>(val(row.wallet_index), 'integer').as('wallet_index'),
        ]),
    ),
);

function insertInto(database: QueryCreator<Tables>, row: WalletRow) {
  return database
    .insertInto('wallets')
    .values(Object.fromEntries(walletColumns.map((column) => [column, row[column]])) as WalletRow)
    .onConflict((conflict) => conflict.doNothing());
}

/**
 * Stores a wallet and its sealed key; the caller wipes the key.
 *
 * @throws ApiError resource_conflict when the app has a wallet with this external id; of several concurrent
 * requests exactly one succeeds.
 */
export async function insertWallet(
  context: OperationContext,
  wallet: NewWalletRow,
  key: WalletKeyMaterial,
): Promise<WalletRow> {
  const row = newWalletRow(context, wallet, key);
  const binding = { walletId: row.id, appId: row.app_id, chainType: row.chain_type };
  const sealed = await context.vault.seal(key.secretBytes, binding);
  const isStored = await store(context, row, {
    wallet_id: row.id,
    sealed_secret: sealed.sealedSecret,
    wrapped_data_key: sealed.wrappedDataKey,
    master_key_id: sealed.masterKeyId,
    entropy_type: key.entropyType,
    derivation_path: key.derivationPath,
    wallet_index: key.walletIndex,
  });
  if (!isStored) throw externalIdTaken(wallet.externalId);
  await storeSigners(context, row.id, wallet.additionalSigners ?? []);
  return row;
}

/** Whether the rows were stored; otherwise the app has a wallet with this external id. */
async function store({ em }: OperationContext, row: WalletRow, key: WalletKeyRow): Promise<boolean> {
  // SQLite has no round trips, and no statement that inserts into two tables.
  if (hasRowLocks({ em })) return (await insertRowAndKey(em, { ...row, ...key })).numAffectedRows === 1n;
  if ((await insertRow(em, row)).numAffectedRows === 0n) return false;
  await insertKey(em, key);
  return true;
}

/** 409 for an external id that another wallet of the app has. */
export function externalIdTaken(externalId: string | undefined): ApiError {
  return new ApiError('resource_conflict', `a wallet with the external id \`${externalId}\` exists already`, {
    headers: { 'x-should-retry': 'false' },
  });
}

/** Stores a wallet whose key somebody else keeps. */
export async function insertWalletRow(
  context: OperationContext,
  row: WalletRow,
  signers: AdditionalSignerInput | undefined,
): Promise<WalletRow> {
  if ((await insertRow(context.em, row)).numAffectedRows === 0n) throw externalIdTaken(row.external_id ?? '');
  await storeSigners(context, row.id, signers ?? []);
  return row;
}

/** The row of a new wallet; `key` says what it shows of its key. */
export function newWalletRow(
  context: Pick<OperationContext, 'ids' | 'app' | 'nowMs'>,
  wallet: NewWalletRow,
  key: Pick<WalletKeyMaterial, 'address' | 'publicKey'>,
): WalletRow {
  const entityAssignment =
    wallet.entity === undefined ? null : { id: context.ids.cuid2(), atMs: context.nowMs };
  return {
    id: context.ids.cuid2(),
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
