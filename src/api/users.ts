import { findUser, findUserByAccount, findUserByUsername } from '../domain/access/user-records/find-user.ts';
import {
  normalizeDiscordUsername,
  normalizeEmail,
  normalizePhoneNumber,
} from '../domain/wallets/users/linked-account-kinds.ts';
import { linkAccount, unlinkAccount } from '../domain/wallets/users/linked-accounts.ts';
import {
  listUsers as listUsersVerb,
  searchUsers as searchUsersVerb,
} from '../domain/wallets/users/list-users.ts';
import {
  batchCreateUsers as batchCreateUsersVerb,
  changeUserState,
  createUser as createUserVerb,
  deleteUser as deleteUserVerb,
} from '../domain/wallets/users/user.ts';
import { mergeCustomMetadata, replaceCustomMetadata, userView } from '../domain/wallets/users/user-view.ts';
import { pregenerateWallets } from '../domain/wallets/users/user-wallets.ts';
import { normalizeAddress } from '../engine/assets/addresses.ts';
import type { Handler } from '../ports/operation-context.ts';

export const listUsers: Handler<'listUsers'> = async ({ query }, context) => {
  const { users, nextCursor } = await listUsersVerb(context, query);
  return { data: users.map(userView), next_cursor: nextCursor };
};

export const createUser: Handler<'createUser'> = async ({ body }, context) =>
  userView(await createUserVerb(context, body));

export const batchCreateUsers: Handler<'batchCreateUsers'> = async ({ body }, context) => ({
  results: await batchCreateUsersVerb(context, body.users),
});

export const getUserByCustomAuthID: Handler<'getUserByCustomAuthID'> = async ({ body }, context) =>
  userView(await findUserByAccount(context, { type: 'custom_auth', subject: body.custom_user_id }));

export const getUserByDiscordUsername: Handler<'getUserByDiscordUsername'> = async ({ body }, context) => {
  const username = normalizeDiscordUsername(body.username);
  return userView(await findUserByUsername(context, { type: 'discord_oauth', username }));
};

export const getUserByEmailAddress: Handler<'getUserByEmailAddress'> = async ({ body }, context) =>
  userView(await findUserByAccount(context, { type: 'email', subject: normalizeEmail(body.address) }));

export const getUserByFarcasterID: Handler<'getUserByFarcasterID'> = async ({ body }, context) =>
  userView(await findUserByAccount(context, { type: 'farcaster', subject: String(body.fid) }));

export const getUserByGitHubUsername: Handler<'getUserByGitHubUsername'> = async ({ body }, context) =>
  userView(await findUserByUsername(context, { type: 'github_oauth', username: body.username }));

export const getUserByInstagramUsername: Handler<'getUserByInstagramUsername'> = async ({ body }, context) =>
  userView(await findUserByUsername(context, { type: 'instagram_oauth', username: body.username }));

export const getUserByPhoneNumber: Handler<'getUserByPhoneNumber'> = async ({ body }, context) => {
  // A value that is not a phone number is looked up unchanged. No user can have it.
  const subject = normalizePhoneNumber(body.number) ?? body.number;
  return userView(await findUserByAccount(context, { type: 'phone', subject }));
};

export const searchUsers: Handler<'searchUsers'> = async ({ body }, context) =>
  userView(await searchUsersVerb(context, body));

export const getUserBySmartWalletAddress: Handler<'getUserBySmartWalletAddress'> = async (
  { body },
  context,
) =>
  userView(
    await findUserByAccount(context, { type: 'smart_wallet', subject: normalizeAddress(body.address) }),
  );

export const getUserBySpotifySubject: Handler<'getUserBySpotifySubject'> = async ({ body }, context) =>
  userView(await findUserByAccount(context, { type: 'spotify_oauth', subject: body.subject }));

export const getUserByTelegramUserID: Handler<'getUserByTelegramUserID'> = async ({ body }, context) =>
  userView(await findUserByAccount(context, { type: 'telegram', subject: body.telegram_user_id }));

export const getUserByTelegramUsername: Handler<'getUserByTelegramUsername'> = async ({ body }, context) =>
  userView(await findUserByUsername(context, { type: 'telegram', username: body.username }));

export const getUserByTwitchUsername: Handler<'getUserByTwitchUsername'> = async ({ body }, context) =>
  userView(await findUserByUsername(context, { type: 'twitch_oauth', username: body.username }));

export const getUserByTwitterSubject: Handler<'getUserByTwitterSubject'> = async ({ body }, context) =>
  userView(await findUserByAccount(context, { type: 'twitter_oauth', subject: body.subject }));

export const getUserByTwitterUsername: Handler<'getUserByTwitterUsername'> = async ({ body }, context) =>
  userView(await findUserByUsername(context, { type: 'twitter_oauth', username: body.username }));

export const getUserByWalletAddress: Handler<'getUserByWalletAddress'> = async ({ body }, context) =>
  userView(await findUserByAccount(context, { type: 'wallet', subject: normalizeAddress(body.address) }));

export const deleteUser: Handler<'deleteUser'> = async ({ path }, context) => {
  await deleteUserVerb(context, path.user_id);
  return undefined;
};

export const getUser: Handler<'getUser'> = async ({ path }, context) =>
  userView(await findUser(context, path.user_id));

export const unfreezeUser: Handler<'unfreezeUser'> = async ({ path }, context) => {
  await changeUserState(context, path.user_id, { isFrozen: false });
  return { success: true };
};

export const freezeUser: Handler<'freezeUser'> = async ({ path }, context) => {
  await changeUserState(context, path.user_id, { isFrozen: true });
  return { success: true };
};

export const linkUserAccount: Handler<'linkUserAccount'> = async ({ path, body }, context) =>
  userView(await linkAccount(context, path.user_id, body));

export const unlinkUserAccount: Handler<'unlinkUserAccount'> = async ({ path, body }, context) =>
  userView(await unlinkAccount(context, path.user_id, body));

export const updateUserCustomMetadata: Handler<'updateUserCustomMetadata'> = async (
  { path, body },
  context,
) => userView(await mergeCustomMetadata(context, path.user_id, body.custom_metadata));

export const setUserCustomMetadata: Handler<'setUserCustomMetadata'> = async ({ path, body }, context) =>
  userView(await replaceCustomMetadata(context, path.user_id, body.custom_metadata));

export const pregenerateUserWallets: Handler<'pregenerateUserWallets'> = async ({ path, body }, context) =>
  userView(await pregenerateWallets(context, path.user_id, body.wallets));
