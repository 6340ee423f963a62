import { depositAccountViews } from '../../domain/money/fiat-deposits/deposit-account-view.ts';
import { listDepositAccounts } from '../../domain/money/fiat-deposits/find-deposit-account.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'listFiatDepositAccounts'> = async ({ path, query }, context) => {
  const accounts = await listDepositAccounts(context, path.wallet_id, query);
  return { fiat_deposit_accounts: await depositAccountViews(context, accounts), next_cursor: null };
};
