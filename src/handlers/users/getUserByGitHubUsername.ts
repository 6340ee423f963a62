import { findUserByUsername } from '../../domain/users/find-user.ts';
import { userView } from '../../domain/users/user-view.ts';
import type { Handler } from '../../services.ts';

export const getUserByGitHubUsername: Handler<'getUserByGitHubUsername'> = async ({ body }, context) =>
  userView(await findUserByUsername(context, { type: 'github_oauth', username: body.username }));
