import { findUserByAccount } from '../../domain/access/user-records/find-user.ts';
import { normalizeEmail } from '../../domain/wallets/users/linked-account-kinds.ts';
import { userView } from '../../domain/wallets/users/user-view.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'getUserByEmailAddress'> = async ({ body }, context) =>
  userView(await findUserByAccount(context, { type: 'email', subject: normalizeEmail(body.address) }));
