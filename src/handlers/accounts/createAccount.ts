import { accountView } from '../../domain/wallets/accounts/account-view.ts';
import { createAccount } from '../../domain/wallets/accounts/change-accounts.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'createAccount'> = async ({ body }, context) =>
  accountView(await createAccount(context, body));
