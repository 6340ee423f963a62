import { accountView } from '../../domain/wallets/accounts/account-view.ts';
import { findAccount } from '../../domain/wallets/accounts/find-account.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'getAccount'> = async ({ path }, context) =>
  accountView(await findAccount(context, path.account_id));
