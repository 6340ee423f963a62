import { findUserByUsername } from '../../domain/access/user-records/find-user.ts';
import { userView } from '../../domain/wallets/users/user-view.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'getUserByTelegramUsername'> = async ({ body }, context) =>
  userView(await findUserByUsername(context, { type: 'telegram', username: body.username }));
