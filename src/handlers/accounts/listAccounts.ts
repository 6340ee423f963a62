import { accountView } from '../../domain/wallets/accounts/account-view.ts';
import { listAccounts } from '../../domain/wallets/accounts/find-account.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'listAccounts'> = async ({ query }, context) => {
  const { accounts, nextCursor } = await listAccounts(context, query);
  return { data: accounts.map(accountView), next_cursor: nextCursor };
};
