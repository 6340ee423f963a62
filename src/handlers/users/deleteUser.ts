import { deleteUser as remove } from '../../domain/wallets/users/delete-user.ts';
import type { Handler } from '../../operation-context.ts';

export const deleteUser: Handler<'deleteUser'> = async ({ path }, context) => {
  await remove(context, path.user_id);
  return undefined;
};
