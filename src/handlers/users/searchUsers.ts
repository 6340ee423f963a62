import { searchUsers } from '../../domain/wallets/users/search-users.ts';
import { userView } from '../../domain/wallets/users/user-view.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'searchUsers'> = async ({ body }, context) =>
  userView(await searchUsers(context, body));
