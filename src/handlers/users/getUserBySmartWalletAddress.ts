import { normalizeAddress } from '../../assets/normalize-address.ts';
import { findUserByAccount } from '../../domain/access/user-records/find-user.ts';
import { userView } from '../../domain/wallets/users/user-view.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'getUserBySmartWalletAddress'> = async ({ body }, context) =>
  userView(
    await findUserByAccount(context, { type: 'smart_wallet', subject: normalizeAddress(body.address) }),
  );
