import { accountView } from '../../domain/wallets/accounts/account-view.ts';
import { updateAccount } from '../../domain/wallets/accounts/change-accounts.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'updateAccount'> = async ({ path, body }, context) =>
  accountView(await updateAccount(context, path.account_id, body));
