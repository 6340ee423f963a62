import {
  executeWalletSwap as executeWalletSwapVerb,
  type PlannedSwapRequest,
  planSwapQuote,
  planSwapRequest,
  quoteWalletSwap as quoteWalletSwapVerb,
  type SwapEstimate,
} from '../domain/money/swaps/swap.ts';
import { walletActionView } from '../domain/money/wallet-actions/wallet-action.ts';
import type { SwapActionResponse } from '../generated/schemas.ts';
import type { PlannedHandler } from '../ports/operation-context.ts';

export const executeWalletSwap: PlannedHandler<'executeWalletSwap', PlannedSwapRequest> = {
  plan: ({ path, body }, context) => planSwapRequest(context, path.wallet_id, body),
  run: async ({ path, body }, context, planned) => {
    const action = await executeWalletSwapVerb(context, { walletId: path.wallet_id, body, planned });
    return walletActionView(action) as SwapActionResponse;
  },
};

export const quoteWalletSwap: PlannedHandler<'quoteWalletSwap', SwapEstimate> = {
  plan: ({ path, body }, context) => planSwapQuote(context, path.wallet_id, body),
  run: ({ path }, context, planned) => quoteWalletSwapVerb(context, { walletId: path.wallet_id, planned }),
};
