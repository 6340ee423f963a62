import {
  type DepositPlan,
  depositIntoVault,
  prepareDeposit,
} from '../../domain/money/earn/deposit-into-vault.ts';
import { walletActionView } from '../../domain/money/wallet-actions/wallet-action-view.ts';
import type { EarnDepositActionResponse } from '../../generated/schemas.ts';
import type { Preparation, PreparedHandler } from '../../operation-context.ts';

export const prepare: Preparation<'depositEthereumEarn', DepositPlan> = ({ path, body }, context) =>
  prepareDeposit(context, path.wallet_id, body);

export const run: PreparedHandler<'depositEthereumEarn', DepositPlan> = async (
  { path, body },
  context,
  prepared,
) => {
  const action = await depositIntoVault(context, { walletId: path.wallet_id, body, prepared });
  return walletActionView(action) as EarnDepositActionResponse;
};
