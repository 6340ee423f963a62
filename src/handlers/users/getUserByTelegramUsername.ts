import { findUserByUsername } from '../../domain/users/find-user.ts';
import { userView } from '../../domain/users/user-view.ts';
import type { Handler } from '../../services.ts';

export const getUserByTelegramUsername: Handler<'getUserByTelegramUsername'> = async ({ body }, context) =>
  userView(await findUserByUsername(context, { type: 'telegram', username: body.username }));
