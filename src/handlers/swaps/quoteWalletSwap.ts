import {
  prepareSwapQuote,
  quoteWalletSwap,
  type SwapEstimate,
} from '../../domain/money/swaps/quote-wallet-swap.ts';
import type { Preparation, PreparedHandler } from '../../operation-context.ts';

export const prepare: Preparation<'quoteWalletSwap', SwapEstimate> = ({ path, body }, context) =>
  prepareSwapQuote(context, path.wallet_id, body);

export const run: PreparedHandler<'quoteWalletSwap', SwapEstimate> = ({ path }, context, prepared) =>
  quoteWalletSwap(context, { walletId: path.wallet_id, prepared });
