import { accountView } from '../../domain/accounts/account-view.ts';
import { updateAccount as change } from '../../domain/accounts/change-accounts.ts';
import type { Handler } from '../../services.ts';

export const updateAccount: Handler<'updateAccount'> = async ({ path, body }, context) =>
  accountView(await change(context, path.account_id, body));
