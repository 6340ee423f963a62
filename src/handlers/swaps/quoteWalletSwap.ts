import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../operation-context.ts';

export const quoteWalletSwap: Handler<'quoteWalletSwap'> = async () => {
  throw notImplemented('quoteWalletSwap');
};
