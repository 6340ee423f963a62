import { findUserByAccount } from '../../domain/users/find-user.ts';
import { userView } from '../../domain/users/user-view.ts';
import type { Handler } from '../../services.ts';

export const getUserByTwitterSubject: Handler<'getUserByTwitterSubject'> = async ({ body }, context) =>
  userView(await findUserByAccount(context, { type: 'twitter_oauth', subject: body.subject }));
