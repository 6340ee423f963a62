import { ApiError, notFound } from '../../../errors.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { endAttachments } from '../../access/automations/end-attachments.ts';
import { requireOwner } from '../../access/owners/require-owner.ts';
import { recordEvent } from '../../base/events/record-event.ts';
import { dismissIntentsAbout } from '../../base/resource-changes/dismiss-intents.ts';
import { readSafeguards } from '../../base/safeguards/read-safeguards.ts';
import type { Tables } from '../../tables.ts';
import { endCards } from './end-cards.ts';
import { findWallet } from './find-wallet.ts';
import { type WalletRow, walletColumns } from './wallet-row.ts';

// HOT: the `wallets` table is on the measured path (bench `sqlite`, `postgres`), so every write to it goes through
// Kysely.

/**
 * Archives a wallet: it is hidden from reads that do not include archived wallets and can no longer be used. Only an
 * operator can restore it. The owner must sign where the app's settings say so.
 *
 * @throws ApiError the codes of `requireOwner`; not_found, also for an archived wallet; not_supported for a custodial wallet.
 */
export async function archiveWallet(context: OperationContext, walletId: string): Promise<WalletRow> {
  const wallet = await findWallet(context, walletId);
  const { archive_requires_owner: requiresOwner } = await readSafeguards(context);
  if (requiresOwner) await requireOwner(context, { ownerId: wallet.owner_id });
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
  await deactivateDepositAccounts(context, row.id);
  await endCards(context, row.id);
  await dismissIntentsAbout(context, { resource: 'wallet', id: row.id, change: 'archived' });
  await recordEvent(context, {
    appId: context.app.id,
    type: 'wallet.archived',
    payload: {
      wallet_id: row.id,
      wallet_address: row.address,
      chain_type: row.chain_type,
      // CHOICE: seconds, as in published samples of this event, although the wallet itself shows milliseconds.
      archived_at: Math.floor(context.nowMs / 1000),
    },
  });
  return row;
}

/** Nothing more can be paid into an archived wallet: a job closes its deposit accounts at their providers. */
async function deactivateDepositAccounts({ em, nowMs }: OperationContext, walletId: string): Promise<void> {
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
