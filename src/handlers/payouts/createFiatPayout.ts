import { createFiatPayout } from '../../domain/money/payouts/create-fiat-payout.ts';
import { type PayoutPlan, preparePayout } from '../../domain/money/payouts/plan-payout.ts';
import { walletActionView } from '../../domain/money/wallet-actions/wallet-action-view.ts';
import type { PayoutResponse } from '../../generated/schemas.ts';
import type { Preparation, PreparedHandler } from '../../operation-context.ts';

export const prepare: Preparation<'createFiatPayout', PayoutPlan> = ({ path, body }, context) =>
  preparePayout(context, path.wallet_id, body);

export const run: PreparedHandler<'createFiatPayout', PayoutPlan> = async (
  { path, body },
  context,
  prepared,
) => {
  const action = await createFiatPayout(context, { walletId: path.wallet_id, body, prepared });
  return walletActionView(action) as PayoutResponse;
};
