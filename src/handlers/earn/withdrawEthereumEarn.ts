import { prepareWithdrawal, withdrawFromVault } from '../../domain/money/earn/withdraw-from-vault.ts';
import type { PlannedCalls } from '../../domain/money/sending/plan-calls.ts';
import { walletActionView } from '../../domain/money/wallet-actions/wallet-action-view.ts';
import type { EarnWithdrawActionResponse } from '../../generated/schemas.ts';
import type { Preparation, PreparedHandler } from '../../operation-context.ts';

export const prepare: Preparation<'withdrawEthereumEarn', PlannedCalls> = ({ path, body }, context) =>
  prepareWithdrawal(context, path.wallet_id, body);

export const run: PreparedHandler<'withdrawEthereumEarn', PlannedCalls> = async (
  { path, body },
  context,
  prepared,
) => {
  const action = await withdrawFromVault(context, { walletId: path.wallet_id, body, prepared });
  return walletActionView(action) as EarnWithdrawActionResponse;
};
