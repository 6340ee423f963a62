import { findUserByAccount } from '../../domain/users/find-user.ts';
import { userView } from '../../domain/users/user-view.ts';
import { normalizeAddress } from '../../domain/wallets/normalize-address.ts';
import type { Handler } from '../../services.ts';

export const getUserBySmartWalletAddress: Handler<'getUserBySmartWalletAddress'> = async (
  { body },
  context,
) =>
  userView(
    await findUserByAccount(context, { type: 'smart_wallet', subject: normalizeAddress(body.address) }),
  );
