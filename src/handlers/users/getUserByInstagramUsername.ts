import { findUserByUsername } from '../../domain/users/find-user.ts';
import { userView } from '../../domain/users/user-view.ts';
import type { Handler } from '../../services.ts';

export const getUserByInstagramUsername: Handler<'getUserByInstagramUsername'> = async ({ body }, context) =>
  userView(await findUserByUsername(context, { type: 'instagram_oauth', username: body.username }));
