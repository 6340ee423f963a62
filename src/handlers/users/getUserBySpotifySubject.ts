import { findUserByAccount } from '../../domain/users/find-user.ts';
import { userView } from '../../domain/users/user-view.ts';
import type { Handler } from '../../services.ts';

export const getUserBySpotifySubject: Handler<'getUserBySpotifySubject'> = async ({ body }, context) =>
  userView(await findUserByAccount(context, { type: 'spotify_oauth', subject: body.subject }));
