import { findUserByUsername } from '../../domain/access/user-records/find-user.ts';
import { normalizeDiscordUsername } from '../../domain/wallets/users/linked-account-kinds.ts';
import { userView } from '../../domain/wallets/users/user-view.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'getUserByDiscordUsername'> = async ({ body }, context) => {
  const username = normalizeDiscordUsername(body.username);
  return userView(await findUserByUsername(context, { type: 'discord_oauth', username }));
};
