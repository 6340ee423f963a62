import { findUser } from '../../domain/access/user-records/find-user.ts';
import { userView } from '../../domain/wallets/users/user-view.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'getUser'> = async ({ path }, context) =>
  userView(await findUser(context, path.user_id));
