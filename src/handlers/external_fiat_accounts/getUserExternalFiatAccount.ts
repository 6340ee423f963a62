import { userFiatAccountView } from '../../domain/money/fiat-accounts/account-view.ts';
import { findFiatAccount } from '../../domain/money/fiat-accounts/find-account.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'getUserExternalFiatAccount'> = async ({ path }, context) => {
  const account = await findFiatAccount(context, { type: 'user', id: path.user_id }, path.account_id);
  return { external_fiat_account: userFiatAccountView(account) };
};
