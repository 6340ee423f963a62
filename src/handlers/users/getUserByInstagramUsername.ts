import { findUserByUsername } from '../../domain/access/user-records/find-user.ts';
import { userView } from '../../domain/wallets/users/user-view.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'getUserByInstagramUsername'> = async ({ body }, context) =>
  userView(await findUserByUsername(context, { type: 'instagram_oauth', username: body.username }));
