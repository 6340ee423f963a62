import { accountView } from '../../domain/accounts/account-view.ts';
import { findAccount } from '../../domain/accounts/find-account.ts';
import type { Handler } from '../../services.ts';

export const getAccount: Handler<'getAccount'> = async ({ path }, context) =>
  accountView(await findAccount(context, path.account_id));
