import { userFiatAccountView } from '../../domain/money/fiat-accounts/account-view.ts';
import { listFiatAccounts } from '../../domain/money/fiat-accounts/find-account.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'listUserExternalFiatAccounts'> = async ({ path, query }, context) => {
  const accounts = await listFiatAccounts(context, { type: 'user', id: path.user_id }, query);
  return { external_fiat_accounts: accounts.map(userFiatAccountView), next_cursor: null };
};
