import { depositAccountViews } from '../../domain/money/fiat-deposits/deposit-account-view.ts';
import { findDepositAccount } from '../../domain/money/fiat-deposits/find-deposit-account.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'getFiatDepositAccount'> = async ({ path }, context) => {
  const account = await findDepositAccount(context, path.wallet_id, path.deposit_account_id);
  const [view] = await depositAccountViews(context, [account]);
  return { fiat_deposit_account: view! };
};
