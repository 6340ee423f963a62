import { accountView } from '../../domain/wallets/accounts/account-view.ts';
import { updateAccount as change } from '../../domain/wallets/accounts/change-accounts.ts';
import type { Handler } from '../../operation-context.ts';

export const updateAccount: Handler<'updateAccount'> = async ({ path, body }, context) =>
  accountView(await change(context, path.account_id, body));
