import { type ClaimPlan, claimRewards, prepareClaim } from '../../domain/money/earn/claim-rewards.ts';
import { walletActionView } from '../../domain/money/wallet-actions/wallet-action-view.ts';
import type { EarnIncentiveClaimActionResponse } from '../../generated/schemas.ts';
import type { Preparation, PreparedHandler } from '../../operation-context.ts';

export const prepare: Preparation<'claimEthereumEarnIncentive', ClaimPlan> = ({ path, body }, context) =>
  prepareClaim(context, path.wallet_id, body);

export const run: PreparedHandler<'claimEthereumEarnIncentive', ClaimPlan> = async (
  { path, body },
  context,
  prepared,
) => {
  const action = await claimRewards(context, { walletId: path.wallet_id, body, prepared });
  return walletActionView(action) as EarnIncentiveClaimActionResponse;
};
