import { collectFees, type FeePlan, prepareFeeCollection } from '../../domain/money/earn/collect-fees.ts';
import { walletActionView } from '../../domain/money/wallet-actions/wallet-action-view.ts';
import type { EarnFeeCollectActionResponse } from '../../generated/schemas.ts';
import type { Preparation, PreparedHandler } from '../../operation-context.ts';

export const prepare: Preparation<'collectEthereumEarnFees', FeePlan> = ({ path, body }, context) =>
  prepareFeeCollection(context, path.wallet_id, body);

export const run: PreparedHandler<'collectEthereumEarnFees', FeePlan> = async (
  { path, body },
  context,
  prepared,
) => {
  const action = await collectFees(context, { walletId: path.wallet_id, body, prepared });
  return walletActionView(action) as EarnFeeCollectActionResponse;
};
