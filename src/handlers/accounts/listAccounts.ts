import { accountView } from '../../domain/wallets/accounts/account-view.ts';
import { listAccounts as list } from '../../domain/wallets/accounts/find-account.ts';
import type { Handler } from '../../operation-context.ts';

export const listAccounts: Handler<'listAccounts'> = async ({ query }, context) => {
  const { accounts, nextCursor } = await list(context, query);
  return { data: accounts.map(accountView), next_cursor: nextCursor };
};
