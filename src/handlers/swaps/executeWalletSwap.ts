import { executeWalletSwap, prepareSwap } from '../../domain/money/swaps/execute-wallet-swap.ts';
import type { SwapPlan } from '../../domain/money/swaps/plan-swap.ts';
import { walletActionView } from '../../domain/money/wallet-actions/wallet-action-view.ts';
import type { SwapActionResponse } from '../../generated/schemas.ts';
import type { Preparation, PreparedHandler } from '../../operation-context.ts';

export const prepare: Preparation<'executeWalletSwap', SwapPlan> = ({ path, body }, context) =>
  prepareSwap(context, path.wallet_id, body);

export const run: PreparedHandler<'executeWalletSwap', SwapPlan> = async (
  { path, body },
  context,
  prepared,
) => {
  const action = await executeWalletSwap(context, { walletId: path.wallet_id, body, prepared });
  return walletActionView(action) as SwapActionResponse;
};
