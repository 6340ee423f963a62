import type { WalletCreationInput } from '../../generated/schemas.ts';
import type { OperationContext } from '../../services.ts';
import { findUserForUpdate, type StoredUser } from './find-user.ts';
import { addWallets, announceWallets, prepareWallets, wipeWallets } from './user-wallets.ts';

/**
 * Makes wallets for a user who need not be there: all of them or none.
 *
 * @throws ApiError not_found; invalid_data; resource_conflict when an external id is taken.
 */
export async function pregenerateWallets(
  context: OperationContext,
  userId: string,
  inputs: readonly WalletCreationInput[],
): Promise<StoredUser> {
  const wallets = await prepareWallets(context, inputs);
  try {
    const user = await findUserForUpdate(context, userId);
    const withWallets = await addWallets(context, user, wallets);
    await announceWallets(context, withWallets);
    return withWallets.user;
  } finally {
    wipeWallets(wallets);
  }
}
