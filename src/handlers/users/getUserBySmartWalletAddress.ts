import { findUserByAccount } from '../../domain/access/user-records/find-user.ts';
import { userView } from '../../domain/wallets/users/user-view.ts';
import { normalizeAddress } from '../../domain/base/addresses/normalize-address.ts';
import type { Handler } from '../../services.ts';

export const getUserBySmartWalletAddress: Handler<'getUserBySmartWalletAddress'> = async (
  { body },
  context,
) =>
  userView(
    await findUserByAccount(context, { type: 'smart_wallet', subject: normalizeAddress(body.address) }),
  );
