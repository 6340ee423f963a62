import { depositAccountViews } from '../../domain/money/fiat-deposits/deposit-account-view.ts';
import {
  openDepositAccount,
  prepareDepositAccount,
} from '../../domain/money/fiat-deposits/open-deposit-account.ts';
import type { Preparation, PreparedHandler } from '../../operation-context.ts';

type Found = Awaited<ReturnType<typeof prepareDepositAccount>>;

export const prepare: Preparation<'createFiatDepositAccount', Found> = ({ path, body }, context) =>
  prepareDepositAccount(context, { walletId: path.wallet_id, body });

export const run: PreparedHandler<'createFiatDepositAccount', Found> = async (
  { path, body },
  context,
  prepared,
) => {
  const account = await openDepositAccount(context, { walletId: path.wallet_id, body, prepared });
  const [view] = await depositAccountViews(context, [account]);
  return { fiat_deposit_account: view! };
};
