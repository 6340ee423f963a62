import { setImmediate } from 'node:timers/promises';
import type { ColumnDataType, Selectable } from 'kysely';
import { ApiError, invalidField } from '../../../errors.ts';
import type {
  AdditionalSignerInput,
  AssignWalletEntityRequest,
  CreateWalletRequest,
  WalletBatchCreateResult,
  WalletBatchItemInput,
  WalletChainType,
} from '../../../generated/schemas.ts';
import type { NewWalletKey } from '../../../ports/key-store.ts';
import { type OperationContext, type Planned, unwrapPlan } from '../../../ports/operation-context.ts';
import { prepareInsertPair } from '../../../storage/prepared-statements.ts';
import { requireKeyQuorums } from '../../access/key-quorums/find-key-quorum.ts';
import { requireFewMembers } from '../../access/key-quorums/key-quorum.ts';
import { type OwnerFields, resolveOwner } from '../../access/key-quorums/resolve-owner.ts';
import { admitWallet } from '../../access/organizations/organization.ts';
import { requirePolicies } from '../../access/policies/find-policy.ts';
import { walletKeyBinding } from '../../base/sealed-keys/sealed-keys.ts';
import { prepareQuery } from '../../prepared-query.ts';
import { inSavepoint } from '../../savepoint.ts';
import type { Tables } from '../../tables.ts';
import {
  authorityWithOwner,
  type NewAuthority,
  type SealedFor,
  sealedFor,
} from '../wallet-authorities/new-authority.ts';
import { walletView } from './find-wallet.ts';
import { type WalletRow, WalletSignerEntity, walletColumns } from './wallet.entity.ts';

type CheckContext = Pick<OperationContext, 'app' | 'em'>;

/** The wallet fields of a body that refer to policies and key quorums, without the owner. */
interface WalletFields {
  readonly policy_ids?: readonly string[] | undefined;
  readonly additional_signers?: AdditionalSignerInput | undefined;
}

/**
 * Checks that the policies and key quorums that a body names exist in the app, that the policies match the wallet's
 * chain type, and that the key quorums do not have too many members.
 *
 * @throws ApiError invalid_data
 */
export async function checkWalletFields(
  context: CheckContext,
  fields: WalletFields,
  chainType: string,
): Promise<void> {
  await requirePolicies(context, fields.policy_ids ?? [], chainType, '/policy_ids');
  const signers = fields.additional_signers ?? [];
  for (const [index, { override_policy_ids: policyIds = [] }] of signers.entries()) {
    await requirePolicies(context, policyIds, chainType, `/additional_signers/${index}/override_policy_ids`);
  }
  const quorums = signers.map((signer) => signer.signer_id);
  await requireKeyQuorums(context, quorums, '/additional_signers');
  await requireFewMembers(context, quorums, '/additional_signers');
}

/**
 * Resolves the key quorum that owns a new wallet, and locks the user or organization to which the wallet is assigned
 * until the transaction ends. If the request names no owner, an organization's default key quorum owns its wallets.
 *
 * @param newOwnerId the id for a key quorum that is created for the owner. Default: a new id.
 * @returns null for a wallet without an owner. CHOICE: `owner: null` means no owner, even for a wallet of an
 * organization.
 * @throws ApiError invalid_data, also when the user or organization does not exist; wallet_entity_limit_exceeded.
 */
export async function resolveWalletOwner(
  context: OperationContext,
  body: OwnerFields & { readonly entity?: AssignWalletEntityRequest | undefined },
  newOwnerId?: string,
): Promise<string | null> {
  const defaultOwnerId = body.entity === undefined ? null : await admitEntity(context, body.entity);
  const ownerId = await resolveOwner(context, body, newOwnerId);
  return ownerId === undefined ? defaultOwnerId : ownerId;
}

async function admitEntity(context: CheckContext, entity: AssignWalletEntityRequest): Promise<string | null> {
  try {
    return await admitWallet(context, entity);
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'not_found') throw error;
    throw invalidField('/entity/id', `no ${entity.type} \`${entity.id}\` in this app`);
  }
}

export interface KeyOfWallet extends NewWalletKey, SealedFor {
  readonly walletId: string;
}

type KeyContext = Pick<OperationContext, 'app' | 'ids' | 'keyStore'>;

/** Creates the id and the key of a new wallet, without storing them. */
export async function createWalletKey(
  { app, ids, keyStore }: KeyContext,
  chainType: WalletChainType,
  planned?: NewAuthority,
): Promise<KeyOfWallet> {
  const walletId = ids.cuid2();
  const binding = walletKeyBinding({ id: walletId, app_id: app.id, chain_type: chainType });
  const owned = sealedFor(app.id, walletId, planned);
  return { ...(await keyStore.createWalletKey(binding, owned.authority)), ...owned, walletId };
}

/**
 * The number of keys that are derived, or wallets that are stored, before other requests can run. Each takes a
 * millisecond or more.
 */
export const KEYS_AT_ONCE = 10;

/** Creates several keys without storing them. A few are derived concurrently, because that uses several threads. */
export async function createWalletKeys(
  context: KeyContext,
  chainTypes: readonly WalletChainType[],
  authorities: readonly NewAuthority[] = [],
): Promise<KeyOfWallet[]> {
  const keys: KeyOfWallet[] = [];
  for (let from = 0; from < chainTypes.length; from += KEYS_AT_ONCE) {
    const some = chainTypes.slice(from, from + KEYS_AT_ONCE);
    const drawn = some.map((chainType, at) => createWalletKey(context, chainType, authorities[from + at]));
    keys.push(...(await Promise.all(drawn)));
    await setImmediate();
  }
  return keys;
}

// HOT: part of creating a wallet (bench `sqlite`, `postgres`).

type StoreContext = Pick<OperationContext, 'em'>;

/**
 * Stores the rows that index a wallet's additional signers by key quorum and by policy.
 *
 * INVARIANT: the rows of a wallet in `wallet_signers` match its `additional_signers`.
 */
async function storeSigners(
  { em }: StoreContext,
  walletId: string,
  signers: AdditionalSignerInput,
): Promise<void> {
  if (signers.length === 0) return;
  const rows = signers.map((signer, position) => ({
    wallet_id: walletId,
    position,
    signer_id: signer.signer_id,
    override_policy_id: signer.override_policy_ids?.[0] ?? null,
  }));
  await em.getKysely<Tables>().insertInto('wallet_signers').values(rows).execute();
}

export async function replaceSigners(
  context: StoreContext,
  walletId: string,
  signers: AdditionalSignerInput,
): Promise<void> {
  await context.em.nativeDelete(WalletSignerEntity, { walletId });
  await storeSigners(context, walletId, signers);
}

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
  /** When the key was imported; absent for a key that was created here. */
  readonly importedAtMs?: number | undefined;
}

type WalletKeyRow = Selectable<Tables['wallet_keys']>;

/** The types of the columns of `wallet_keys`. */
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
  const { fundWallet } = context;
  if (fundWallet !== undefined)
    context.afterCommit(() => fundWallet({ address: row.address, chainType: row.chain_type }));
  return row;
}

/** Returns the 409 error for an external id that another wallet of the app has. */
export function externalIdTaken(externalId: string | undefined): ApiError {
  return new ApiError('resource_conflict', `a wallet with the external id \`${externalId}\` already exists`, {
    headers: { 'x-should-retry': 'false' },
  });
}

/** Stores a wallet without a key, because a custodian keeps the key. */
export async function insertWalletRow(
  context: OperationContext,
  row: WalletRow,
  signers: AdditionalSignerInput | undefined,
): Promise<WalletRow> {
  if ((await insertRow(context.em, row)).numAffectedRows === 0n) throw externalIdTaken(row.external_id ?? '');
  await storeSigners(context, row.id, signers ?? []);
  return row;
}

/**
 * Returns the row of a new wallet. `key` contains its address and public key, and its id unless that must still be
 * created.
 */
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

/**
 * Creates a wallet with a new key under a planned authority.
 *
 * @throws ApiError what `createWallet` throws.
 */
export async function createPlannedWallet(
  context: OperationContext,
  input: CreateWalletRequest,
  planned: Planned<NewAuthority>,
): Promise<WalletRow> {
  return createWallet(context, input, createWalletKey(context, input.chain_type, unwrapPlan(planned)));
}

/**
 * Creates a wallet with a new key.
 *
 * @param key if given, the key that the caller has already created, because it creates several wallets.
 * @throws ApiError invalid_data when an owner, signer, policy or entity does not exist; resource_conflict when the
 * external id is taken; wallet_entity_limit_exceeded.
 */
export async function createWallet(
  context: OperationContext,
  input: CreateWalletRequest,
  key: Promise<KeyOfWallet> = createWalletKey(context, input.chain_type),
): Promise<WalletRow> {
  // NOTE: the key is derived before the first statement. That statement begins the transaction, and on SQLite all
  // other requests wait for it to end.
  const drawn = await key;
  await checkWalletFields(context, input, input.chain_type);
  const ownerId = await resolveWalletOwner(context, input, drawn.newOwnerId);
  const wallet = {
    chainType: input.chain_type,
    ownerId,
    displayName: input.display_name,
    externalId: input.external_id,
    policyIds: input.policy_ids,
    additionalSigners: input.additional_signers,
    entity: input.entity,
  };
  return insertWallet(context, wallet, await keyFor(context, input.chain_type, { drawn, ownerId }));
}

/**
 * Returns the created key. If a different key quorum became the owner in the meantime, which is rare, creates another
 * key that is sealed under that owner.
 */
async function keyFor(
  context: OperationContext,
  chainType: CreateWalletRequest['chain_type'],
  { drawn, ownerId }: { drawn: KeyOfWallet; ownerId: string | null },
): Promise<KeyOfWallet> {
  if (drawn.authority === undefined || ownerId === null || drawn.ownerId === ownerId) return drawn;
  const planned = await authorityWithOwner(context, drawn.authority, ownerId);
  return createWalletKey(context, chainType, planned);
}

/**
 * Creates up to 100 wallets independently: the refusal of one wallet does not affect the others.
 *
 * @param authorities the authorities under which the keys are sealed, by index.
 * @returns one entry for each input, in order.
 */
export async function createWalletsBatch(
  context: OperationContext,
  inputs: readonly WalletBatchItemInput[],
  authorities: Planned<readonly NewAuthority[]> = { value: [] },
): Promise<WalletBatchCreateResult[]> {
  const types = inputs.map((input) => input.chain_type);
  const keys = await createWalletKeys(context, types, unwrapPlan(authorities));
  const results: WalletBatchCreateResult[] = [];
  for (const [index, input] of inputs.entries()) {
    // Let other requests run.
    if (index % KEYS_AT_ONCE === 0) await setImmediate();
    results.push(await createOne(context, { index, input, key: keys[index] as KeyOfWallet }));
  }
  return results;
}

async function createOne(
  context: OperationContext,
  { index, input, key }: { index: number; input: WalletBatchItemInput; key: KeyOfWallet },
): Promise<WalletBatchCreateResult> {
  try {
    // A refusal rolls back only this wallet.
    const row = await inSavepoint(context, (em, notes) =>
      createWallet({ ...context, em, notes }, input, Promise.resolve(key)),
    );
    return { index, success: true, wallet: walletView(row) };
  } catch (error) {
    if (!(error instanceof ApiError) || error.status >= 500) throw error;
    return { index, success: false, error: error.message, code: error.code };
  }
}
