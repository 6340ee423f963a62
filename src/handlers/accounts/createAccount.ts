import { accountView } from '../../domain/wallets/accounts/account-view.ts';
import { createAccount as create } from '../../domain/wallets/accounts/change-accounts.ts';
import type { Handler } from '../../operation-context.ts';

export const createAccount: Handler<'createAccount'> = async ({ body }, context) =>
  accountView(await create(context, body));
