import { listUsers } from '../../domain/wallets/users/list-users.ts';
import { userView } from '../../domain/wallets/users/user-view.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'listUsers'> = async ({ query }, context) => {
  const { users, nextCursor } = await listUsers(context, query);
  return { data: users.map(userView), next_cursor: nextCursor };
};
