import * as accountBalance from '../domain/wallets/accounts/account-balance.ts';
import { accountView } from '../domain/wallets/accounts/account-view.ts';
import * as changeAccounts from '../domain/wallets/accounts/change-accounts.ts';
import * as findAccountModule from '../domain/wallets/accounts/find-account.ts';
import { findAccount } from '../domain/wallets/accounts/find-account.ts';
import type { Handler } from '../operation-context.ts';

export const listAccounts: Handler<'listAccounts'> = async ({ query }, context) => {
  const { accounts, nextCursor } = await findAccountModule.listAccounts(context, query);
  return { data: accounts.map(accountView), next_cursor: nextCursor };
};

export const createAccount: Handler<'createAccount'> = async ({ body }, context) =>
  accountView(await changeAccounts.createAccount(context, body));

export const getAccount: Handler<'getAccount'> = async ({ path }, context) =>
  accountView(await findAccount(context, path.account_id));

export const updateAccount: Handler<'updateAccount'> = async ({ path, body }, context) =>
  accountView(await changeAccounts.updateAccount(context, path.account_id, body));

export const getAccountBalance: Handler<'getAccountBalance'> = async ({ path, query }, context) =>
  accountBalance.getAccountBalance(context, path.account_id, { isTestnet: query.testnet_mode ?? false });
