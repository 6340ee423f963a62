import {
  createFiatPayout as createFiatPayoutVerb,
  type PayoutPlan,
  planPayout,
} from '../domain/money/payouts/fiat-payout.ts';
import { walletActionView } from '../domain/money/wallet-actions/wallet-action.ts';
import type { PayoutResponse } from '../generated/schemas.ts';
import type { PlannedHandler } from '../ports/operation-context.ts';

export const createFiatPayout: PlannedHandler<'createFiatPayout', PayoutPlan> = {
  plan: ({ path, body }, context) => planPayout(context, path.wallet_id, body),
  run: async ({ path, body }, context, planned) => {
    const action = await createFiatPayoutVerb(context, { walletId: path.wallet_id, body, planned });
    return walletActionView(action) as PayoutResponse;
  },
};
