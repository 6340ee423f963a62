import { findUserByUsername } from '../../domain/users/find-user.ts';
import { normalizeDiscordUsername } from '../../domain/users/linked-account-kinds.ts';
import { userView } from '../../domain/users/user-view.ts';
import type { Handler } from '../../services.ts';

export const getUserByDiscordUsername: Handler<'getUserByDiscordUsername'> = async ({ body }, context) => {
  const username = normalizeDiscordUsername(body.username);
  return userView(await findUserByUsername(context, { type: 'discord_oauth', username }));
};
