import { findUserByAccount } from '../../domain/access/user-records/find-user.ts';
import { normalizePhoneNumber } from '../../domain/wallets/users/linked-account-kinds.ts';
import { userView } from '../../domain/wallets/users/user-view.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'getUserByPhoneNumber'> = async ({ body }, context) => {
  // Not a phone number, so no user can have it.
  const subject = normalizePhoneNumber(body.number) ?? body.number;
  return userView(await findUserByAccount(context, { type: 'phone', subject }));
};
