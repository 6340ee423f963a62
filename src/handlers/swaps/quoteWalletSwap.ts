import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const quoteWalletSwap: Handler<'quoteWalletSwap'> = async () => {
  throw notImplemented('quoteWalletSwap');
};
