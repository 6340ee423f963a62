import { findUserByAccount } from '../../domain/users/find-user.ts';
import { userView } from '../../domain/users/user-view.ts';
import { normalizeAddress } from '../../domain/wallets/normalize-address.ts';
import type { Handler } from '../../services.ts';

export const getUserByWalletAddress: Handler<'getUserByWalletAddress'> = async ({ body }, context) =>
  userView(await findUserByAccount(context, { type: 'wallet', subject: normalizeAddress(body.address) }));
