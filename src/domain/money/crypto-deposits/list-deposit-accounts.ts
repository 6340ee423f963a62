import assert from 'node:assert/strict';
import { invalidQuery } from '../../../errors.ts';
import type { CryptoDepositAddressRoute } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { findPage } from '../../../storage/find-page.ts';
import { AttachmentEntity, type StoredAttachment } from '../../access/automations/attachment.entity.ts';
import { findWallet } from '../../wallets/wallets/find-wallet.ts';

const MAX_PAGE = 100;

/**
 * One page of the deposit addresses that lead to a wallet, newest first.
 *
 * @throws ApiError not_found; invalid_data for a cursor of no address.
 */
export async function listDepositAccounts(
  context: Pick<OperationContext, 'app' | 'em'>,
  walletId: string,
  { cursor, limit = MAX_PAGE }: { cursor?: string | undefined; limit?: number | undefined },
): Promise<{ accounts: CryptoDepositAddressRoute[]; nextCursor: string | null }> {
  const { em } = context;
  const { id: destinationWalletId } = await findWallet(context, walletId);
  const after =
    cursor === undefined
      ? undefined
      : await em.findOne(AttachmentEntity, { id: cursor, destinationWalletId });
  if (after === null) throw invalidQuery('cursor', 'expected the `next_cursor` of a previous page');
  const { page, nextCursor } = await findPage(
    em,
    AttachmentEntity,
    { destinationWalletId },
    { after, limit },
  );
  return { accounts: page.map(accountView), nextCursor };
}

/** A deposit address and its route, in wire form. `wallet_id` is the wallet at the address. */
export function accountView({ walletId, route }: StoredAttachment): CryptoDepositAddressRoute {
  assert(route !== null, 'expected the attachment of a deposit address');
  return { wallet_id: walletId, ...route };
}
