import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const quoteWalletTransfer: Handler<'quoteWalletTransfer'> = async () => {
  throw notImplemented('quoteWalletTransfer');
};
