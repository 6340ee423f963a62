import { changeUserState } from '../../domain/wallets/users/change-user-state.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'unfreezeUser'> = async ({ path }, context) => {
  await changeUserState(context, path.user_id, { isFrozen: false });
  return { success: true };
};
