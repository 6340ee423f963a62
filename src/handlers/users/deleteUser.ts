import { deleteUser } from '../../domain/wallets/users/delete-user.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'deleteUser'> = async ({ path }, context) => {
  await deleteUser(context, path.user_id);
  return undefined;
};
