import { ApiError, invalidField, notFound } from '../../../errors.ts';
import type {
  AssignWalletEntityRequest,
  UpdateWalletRequest,
  WalletEntityAssignmentResponse,
} from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { isUniqueViolation } from '../../../storage/database-errors.ts';
import { findApp } from '../../access/apps/find-app.ts';
import { endAttachments } from '../../access/automations/automation.ts';
import { checkOwner, resolveOwner } from '../../access/key-quorums/resolve-owner.ts';
import { type OperatorCaller, recordChange } from '../../access/operators/operator.ts';
import { admitWallet } from '../../access/organizations/organization.ts';
import { requireAuthorization } from '../../access/owners/require-authorization.ts';
import { recordEvent } from '../../base/events/events.ts';
import { lookupKey } from '../../base/lookup-keys/lookup-key.ts';
import { dismissIntentsAbout } from '../../base/resource-changes/dismiss-intents.ts';
import { readSafeguards } from '../../base/safeguards/safeguards.ts';
import type { Tables } from '../../tables.ts';
import { checkWalletFields, externalIdTaken, replaceSigners } from './create-wallet.ts';
import { EXTERNAL_PREFIX, findWallet } from './find-wallet.ts';
import { WalletEntity, type WalletRow, walletColumns } from './wallet.entity.ts';
import { changeAuthority } from './wallet-keys.ts';

// KYSELY: reads tables of higher layers, whose entities cannot be imported here.

/**
 * Cancels the cards that spend from a wallet, in the transaction that archives the wallet or changes its owner. A job
 * cancels them at their issuers.
 *
 * CHOICE: the cards end, because the user got them as the wallet's owner. The owner's approvals on the chain stay, but
 * no card can use them.
 */
async function endCards(
  { em, nowMs }: Pick<OperationContext, 'em' | 'nowMs'>,
  walletId: string,
): Promise<void> {
  await em
    .getKysely<Tables>()
    .updateTable('cards')
    .set({ status: 'canceled', next_check_at_ms: nowMs })
    .where('wallet_id', '=', walletId)
    .where('status', '<>', 'canceled')
    .execute();
}

// KYSELY: changes wallets by compare-and-set with `returning`.

/** The app setting that allows adding an external id after creation. */
const LATE_EXTERNAL_ID = 'late_external_id';

/**
 * Updates the given fields of a wallet; given lists replace the stored ones. If the wallet has an owner, only the owner
 * before the change may authorize it.
 *
 * @throws ApiError not_found; what `requireAuthorization` throws; invalid_data; resource_conflict when the external id
 * is taken or the owner changed concurrently.
 */
export async function updateWallet(
  context: OperationContext,
  walletId: string,
  input: UpdateWalletRequest,
): Promise<WalletRow> {
  const wallet = await findWallet(context, walletId);
  const authorization = await requireAuthorization(context, { ownerId: wallet.owner_id });
  if (input.external_id !== undefined) await checkLateExternalId(context, wallet);
  await checkWalletFields(context, input, wallet.chain_type);
  const ownerId = await resolveOwner(context, input);
  // INVARIANT: the wallet's row is written first, which locks it. Signers that a concurrent change has written are
  // therefore visible when the list is replaced.
  const row = await store(context, wallet, { input, ownerId });
  if (input.additional_signers !== undefined) {
    await replaceSigners(context, wallet.id, input.additional_signers);
  }
  // A request that names the current owner again seals an authority if the wallet has none.
  const names = [input.owner, input.owner_id, input.additional_signers, input.policy_ids];
  if (names.some((given) => given !== undefined))
    await changeAuthority(context, { before: wallet, after: row, authorization });
  if (row.owner_id !== wallet.owner_id) {
    await endAttachments(context.em, wallet.id);
    await endCards(context, wallet.id);
  }
  await dismissIntentsAbout(context, { resource: 'wallet', id: wallet.id, change: 'changed' });
  return row;
}

/**
 * Makes those checks of a wallet update that can be made before it is executed, without changing anything.
 *
 * @throws ApiError invalid_data
 */
export async function checkWalletChange(
  context: OperationContext,
  wallet: WalletRow,
  input: UpdateWalletRequest,
): Promise<void> {
  if (input.external_id !== undefined) await checkLateExternalId(context, wallet);
  await checkWalletFields(context, input, wallet.chain_type);
  await checkOwner(context, input);
}

// CHOICE: an external id is set once, at creation, as in the specification, unless the app's settings allow it later.
async function checkLateExternalId(context: OperationContext, wallet: WalletRow): Promise<void> {
  if (wallet.external_id !== null) throw invalidField('/external_id', 'is already set and cannot be changed');
  const { settings } = await findApp(context.em, context.app.id);
  if (settings[LATE_EXTERNAL_ID] !== true) {
    throw invalidField('/external_id', 'can only be set when the wallet is created');
  }
}

async function store(
  context: OperationContext,
  wallet: WalletRow,
  { input, ownerId }: { input: UpdateWalletRequest; ownerId: string | null | undefined },
): Promise<WalletRow> {
  const { display_name, external_id, policy_ids, additional_signers } = input;
  const change = {
    // The statement needs at least one column even if nothing changes.
    owner_id: ownerId === undefined ? wallet.owner_id : ownerId,
    ...(display_name === undefined ? {} : { display_name }),
    ...(external_id === undefined ? {} : { external_id }),
    ...(policy_ids === undefined ? {} : { policy_id: policy_ids[0] ?? null }),
    ...(additional_signers === undefined ? {} : { additional_signers: JSON.stringify(additional_signers) }),
  };
  const row = await context.em
    .getKysely<Tables>()
    .updateTable('wallets')
    .set(change)
    .where('id', '=', wallet.id)
    // INVARIANT: the owner whose signatures were verified is still the owner when the change is made.
    .where('owner_id', 'is not distinct from', wallet.owner_id)
    .where('archived_at_ms', 'is', null)
    .returning(walletColumns)
    .executeTakeFirst()
    .catch((error: unknown) => {
      if (isUniqueViolation(error)) throw externalIdTaken(external_id);
      throw error;
    });
  if (row === undefined) throw new ApiError('resource_conflict');
  return row;
}

/**
 * Archives a wallet. It can no longer be used, and only reads that include archived wallets show it. Only an operator
 * can restore it. The owner must sign if the app's settings require it.
 *
 * @throws ApiError what `requireAuthorization` throws; not_found, also for an archived wallet; not_supported for a
 * custodial wallet.
 */
export async function archiveWallet(context: OperationContext, walletId: string): Promise<WalletRow> {
  const wallet = await findWallet(context, walletId);
  const { archive_requires_owner: requiresOwner } = await readSafeguards(context);
  if (requiresOwner) await requireAuthorization(context, { ownerId: wallet.owner_id });
  if (wallet.custody_provider !== null) {
    throw new ApiError('not_supported', 'a custodial wallet cannot be archived');
  }
  const row = await context.em
    .getKysely<Tables>()
    .updateTable('wallets')
    .set({ archived_at_ms: context.nowMs })
    .where('id', '=', wallet.id)
    // INVARIANT: the owner whose signatures were verified is still the owner.
    .where('owner_id', 'is not distinct from', wallet.owner_id)
    .where('archived_at_ms', 'is', null)
    .returning(walletColumns)
    .executeTakeFirst();
  if (row === undefined) throw notFound('Wallet');
  await endAttachments(context.em, row.id);
  await deactivateFiatDepositAccounts(context, row.id);
  await endCards(context, row.id);
  await dismissIntentsAbout(context, { resource: 'wallet', id: row.id, change: 'archived' });
  await recordEvent(context, {
    appId: context.app.id,
    type: 'wallet.archived',
    payload: {
      wallet_id: row.id,
      wallet_address: row.address,
      chain_type: row.chain_type,
      // CHOICE: seconds, as in published samples of this event, although the wallet itself has milliseconds.
      archived_at: Math.floor(context.nowMs / 1000),
    },
  });
  return row;
}

/**
 * Deactivates the fiat deposit accounts of an archived wallet. A job closes them at their providers, so that nothing
 * more can be paid in.
 */
async function deactivateFiatDepositAccounts(
  { em, nowMs }: OperationContext,
  walletId: string,
): Promise<void> {
  const database = em.getKysely<Tables>();
  const { numUpdatedRows } = await database
    .updateTable('fiat_deposit_accounts')
    .set({ status: 'deactivated', next_check_at_ms: nowMs })
    .where('wallet_id', '=', walletId)
    .where('status', '=', 'activated')
    .executeTakeFirst();
  if (numUpdatedRows === 0n) return;
  const accounts = database
    .selectFrom('fiat_deposit_accounts')
    .select('id')
    .where('wallet_id', '=', walletId);
  await database.deleteFrom('fiat_deposit_instructions').where('id', 'in', accounts).execute();
}

/**
 * Restores an archived wallet with its owner, signers and policies. An operator calls it, so there is no authenticated
 * app. The wallet may belong to any app, unless the operator works on a single app.
 *
 * @throws ApiError not_found; invalid_state for a wallet that is not archived; invalid_data for an external id that
 * wallets of several apps have.
 */
export async function restoreWallet(
  context: Pick<OperationContext, 'em' | 'ids' | 'notes' | 'nowMs'> & { readonly by: OperatorCaller },
  walletId: string,
): Promise<WalletRow> {
  const database = context.em.getKysely<Tables>();
  const id = await walletOfCaller(context, walletId);
  const row = await database
    .updateTable('wallets')
    .set({ archived_at_ms: null })
    .where('id', '=', id)
    .where('archived_at_ms', 'is not', null)
    .returning(walletColumns)
    .executeTakeFirst();
  if (row === undefined) throw new ApiError('invalid_state', `the wallet \`${walletId}\` is not archived`);
  await recordEvent(context, {
    appId: row.app_id,
    type: 'wallet.restored',
    payload: { wallet_id: row.id, wallet_address: row.address, chain_type: row.chain_type },
  });
  await recordChange(context, {
    appId: row.app_id,
    action: 'restoreWallet',
    targets: { wallet_id: row.id },
  });
  return row;
}

/**
 * Returns the id of the wallet that an operator names by its id or by `ext_wal_` and its external id.
 *
 * @throws ApiError not_found; invalid_data when several apps have a wallet with the external id.
 */
async function walletOfCaller(
  { em, by }: Pick<OperationContext, 'em'> & { readonly by: OperatorCaller },
  walletId: string,
): Promise<string> {
  const named = walletId.startsWith(EXTERNAL_PREFIX)
    ? { externalId: lookupKey(walletId.slice(EXTERNAL_PREFIX.length)) }
    : { id: lookupKey(walletId) };
  const found = await em.find(WalletEntity, named, { disableIdentityMap: true });
  const own = found.filter(({ appId }) => by.operator === undefined || by.operator.appId === appId);
  const [known, ...others] = own;
  if (known === undefined) throw notFound('Wallet');
  if (others.length > 0) {
    const message = `${own.length} apps have a wallet with the external id of \`${walletId}\`; send the wallet's id`;
    throw new ApiError('invalid_data', message);
  }
  return known.id;
}

/**
 * Assigns a wallet to a user or an organization, which is possible only once. The owner does not change.
 *
 * @throws ApiError not_found when the wallet or entity does not exist; wallet_entity_already_set,
 * wallet_entity_limit_exceeded.
 */
export async function assignWalletEntity(
  context: OperationContext,
  walletId: string,
  entity: AssignWalletEntityRequest,
): Promise<WalletEntityAssignmentResponse> {
  const wallet = await findWallet(context, walletId);
  if (wallet.entity_id !== null) throw alreadySet();
  await admitWallet(context, entity);
  const assignmentId = context.ids.cuid2();
  const assigned = await context.em.nativeUpdate(
    WalletEntity,
    { id: wallet.id, entityId: null },
    {
      entityType: entity.type,
      entityId: entity.id,
      entityAssignmentId: assignmentId,
      entityAssignedAtMs: context.nowMs,
    },
  );
  if (assigned === 0) throw alreadySet();
  return {
    id: assignmentId,
    wallet_id: wallet.id,
    entity: { id: entity.id, type: entity.type },
    created_at: context.nowMs,
    updated_at: context.nowMs,
  };
}

function alreadySet(): ApiError {
  return new ApiError('wallet_entity_already_set', undefined, { headers: { 'x-should-retry': 'false' } });
}
