import { deleteFiatAccount } from '../../domain/money/fiat-accounts/delete-account.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'deleteUserExternalFiatAccount'> = async ({ path }, context) => {
  await deleteFiatAccount(context, { type: 'user', id: path.user_id }, path.account_id);
  return { success: true };
};
