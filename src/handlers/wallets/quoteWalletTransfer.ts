import {
  prepareQuote,
  type QuotePlan,
  quoteWalletTransfer,
} from '../../domain/money/wallet-actions/quote-transfer.ts';
import type { Preparation, PreparedHandler } from '../../operation-context.ts';

export const prepare: Preparation<'quoteWalletTransfer', QuotePlan> = ({ path, body }, context) =>
  prepareQuote(context, path.wallet_id, body);

export const run: PreparedHandler<'quoteWalletTransfer', QuotePlan> = ({ path, body }, context, prepared) =>
  quoteWalletTransfer(context, { walletId: path.wallet_id, body, prepared });
