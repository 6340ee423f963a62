import {
  accountView,
  createAccount as createAccountVerb,
  findAccount,
  getAccountBalance as getAccountBalanceVerb,
  listAccounts as listAccountsVerb,
  updateAccount as updateAccountVerb,
} from '../domain/wallets/accounts/account.ts';
import type { Handler } from '../ports/operation-context.ts';

export const listAccounts: Handler<'listAccounts'> = async ({ query }, context) => {
  const { accounts, nextCursor } = await listAccountsVerb(context, query);
  return { data: accounts.map(accountView), next_cursor: nextCursor };
};

export const createAccount: Handler<'createAccount'> = async ({ body }, context) =>
  accountView(await createAccountVerb(context, body));

export const getAccount: Handler<'getAccount'> = async ({ path }, context) =>
  accountView(await findAccount(context, path.account_id));

export const updateAccount: Handler<'updateAccount'> = async ({ path, body }, context) =>
  accountView(await updateAccountVerb(context, path.account_id, body));

export const getAccountBalance: Handler<'getAccountBalance'> = async ({ path, query }, context) =>
  getAccountBalanceVerb(context, path.account_id, { isTestnet: query.testnet_mode ?? false });
