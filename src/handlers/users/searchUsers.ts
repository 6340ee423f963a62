import { searchUsers as search } from '../../domain/wallets/users/search-users.ts';
import { userView } from '../../domain/wallets/users/user-view.ts';
import type { Handler } from '../../operation-context.ts';

export const searchUsers: Handler<'searchUsers'> = async ({ body }, context) =>
  userView(await search(context, body));
