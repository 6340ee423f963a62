import { ApiError, notFound } from '../../../errors.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { recordEvent } from '../../base/events/record-event.ts';
import { lookupKey } from '../../base/lookup-keys/lookup-key.ts';
import type { Tables } from '../../tables.ts';
import { type WalletRow, walletColumns } from './wallet-row.ts';

// HOT: the `wallets` table is on the measured path (bench `sqlite`, `postgres`), so every write to it goes through
// Kysely.

/**
 * Restores an archived wallet of any app, with its owner, signers and policies. Called by an operator, so there is no
 * authenticated app.
 *
 * @throws ApiError not_found; invalid_state for a wallet that is not archived.
 */
export async function restoreWallet(
  context: Pick<OperationContext, 'em' | 'ids' | 'nowMs'>,
  walletId: string,
): Promise<WalletRow> {
  const database = context.em.getKysely<Tables>();
  const id = lookupKey(walletId);
  const row = await database
    .updateTable('wallets')
    .set({ archived_at_ms: null })
    .where('id', '=', id)
    .where('archived_at_ms', 'is not', null)
    .returning(walletColumns)
    .executeTakeFirst();
  if (row === undefined) {
    const known = await database.selectFrom('wallets').select('id').where('id', '=', id).executeTakeFirst();
    if (known === undefined) throw notFound('Wallet');
    throw new ApiError('invalid_state', `the wallet \`${walletId}\` is not archived`);
  }
  await recordEvent(context, {
    appId: row.app_id,
    type: 'wallet.restored',
    payload: { wallet_id: row.id, wallet_address: row.address, chain_type: row.chain_type },
  });
  return row;
}
