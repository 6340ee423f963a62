import { ApiError, invalidField } from '../../../errors.ts';
import type { UpdateWalletRequest } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { isUniqueViolation } from '../../../storage/database-errors.ts';
import { findApp } from '../../access/apps/find-app.ts';
import { endAttachments } from '../../access/automations/end-attachments.ts';
import { checkOwner, resolveOwner } from '../../access/key-quorums/resolve-owner.ts';
import { requireOwner } from '../../access/owners/require-owner.ts';
import { dismissIntentsAbout } from '../../base/resource-changes/dismiss-intents.ts';
import type { Tables } from '../../tables.ts';
import { checkWalletFields } from './check-wallet-fields.ts';
import { endCards } from './end-cards.ts';
import { findWallet } from './find-wallet.ts';
import { externalIdTaken } from './insert-wallet.ts';
import { replaceSigners } from './store-signers.ts';
import { changeAuthority } from './wallet-authority.ts';
import { type WalletRow, walletColumns } from './wallet-row.ts';

// HOT: the `wallets` table is on the measured path (bench `sqlite`, `postgres`), so every write to it goes through
// Kysely.

/** The app setting that allows adding an external id after creation. */
const LATE_EXTERNAL_ID = 'late_external_id';

/**
 * Updates the given fields; lists are replaced. If the wallet has an owner, only the owner from before the change may
 * authorize it.
 *
 * @throws ApiError not_found; the codes of `requireOwner`; invalid_data; resource_conflict when the external id is
 * taken or the owner changed concurrently.
 */
export async function updateWallet(
  context: OperationContext,
  walletId: string,
  input: UpdateWalletRequest,
): Promise<WalletRow> {
  const wallet = await findWallet(context, walletId);
  await requireOwner(context, { ownerId: wallet.owner_id });
  if (input.external_id !== undefined) await checkLateExternalId(context, wallet);
  await checkWalletFields(context, input, wallet.chain_type);
  const ownerId = await resolveOwner(context, input);
  // INVARIANT: the wallet's row is written first, which locks it, so the signers of a concurrent change are already
  // visible and replaced.
  const row = await store(context, wallet, { input, ownerId });
  if (input.additional_signers !== undefined) {
    await replaceSigners(context, wallet.id, input.additional_signers);
  }
  // An owner who is named again is verified from then on, if the key has no authority yet.
  const names = [input.owner, input.owner_id, input.additional_signers, input.policy_ids];
  if (names.some((given) => given !== undefined)) await changeAuthority(context, wallet, row);
  if (row.owner_id !== wallet.owner_id) {
    await endAttachments(context.em, wallet.id);
    await endCards(context, wallet.id);
  }
  await dismissIntentsAbout(context, { resource: 'wallet', id: wallet.id, change: 'changed' });
  return row;
}

/**
 * The immediate checks of a wallet update, without changing anything.
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

// CHOICE: write-once at creation, as the specification has it, unless the app's settings allow it later.
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
    // The statement needs at least one column even when nothing changes.
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
