import { findUser } from '../../domain/users/find-user.ts';
import { userView } from '../../domain/users/user-view.ts';
import type { Handler } from '../../services.ts';

export const getUser: Handler<'getUser'> = async ({ path }, context) =>
  userView(await findUser(context, path.user_id));
