import { findUserByAccount } from '../../domain/access/user-records/find-user.ts';
import { normalizeAddress } from '../../domain/base/addresses/normalize-address.ts';
import { userView } from '../../domain/wallets/users/user-view.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'getUserBySmartWalletAddress'> = async ({ body }, context) =>
  userView(
    await findUserByAccount(context, { type: 'smart_wallet', subject: normalizeAddress(body.address) }),
  );
