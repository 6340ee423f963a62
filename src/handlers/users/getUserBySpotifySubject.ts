import { findUserByAccount } from '../../domain/access/user-records/find-user.ts';
import { userView } from '../../domain/wallets/users/user-view.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'getUserBySpotifySubject'> = async ({ body }, context) =>
  userView(await findUserByAccount(context, { type: 'spotify_oauth', subject: body.subject }));
