import { ApiError, notFound } from '../../../errors.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { type OperatorCaller, requireOwnApp } from '../../access/operators/operator-caller.ts';
import { recordChange } from '../../access/operators/record-operator-action.ts';
import { recordEvent } from '../../base/events/record-event.ts';
import { lookupKey } from '../../base/lookup-keys/lookup-key.ts';
import type { Tables } from '../../tables.ts';
import { type WalletRow, walletColumns } from './wallet-row.ts';

// HOT: the `wallets` table is on the measured path (bench `sqlite`, `postgres`), so every write to it goes through
// Kysely.

/**
 * Restores an archived wallet with its owner, signers and policies. Called by an operator, so there is no
 * authenticated app: the wallet may be of any app, or of the operator's.
 *
 * @throws ApiError not_found; invalid_state for a wallet that is not archived.
 */
export async function restoreWallet(
  context: Pick<OperationContext, 'em' | 'ids' | 'nowMs'> & { readonly by: OperatorCaller },
  walletId: string,
): Promise<WalletRow> {
  const database = context.em.getKysely<Tables>();
  const id = lookupKey(walletId);
  await requireWalletOfCaller(context, id);
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

async function requireWalletOfCaller(
  { em, by }: Pick<OperationContext, 'em'> & { readonly by: OperatorCaller },
  id: string,
): Promise<void> {
  const known = await em
    .getKysely<Tables>()
    .selectFrom('wallets')
    .select('app_id')
    .where('id', '=', id)
    .executeTakeFirst();
  if (known === undefined) throw notFound('Wallet');
  requireOwnApp(by, known.app_id, 'Wallet');
}
