import { quoteWalletTransfer as quote } from '../../domain/money/wallet-actions/quote-transfer.ts';
import type { Handler } from '../../operation-context.ts';

export const quoteWalletTransfer: Handler<'quoteWalletTransfer'> = async ({ path, body }, context) =>
  quote(context, path.wallet_id, body);
