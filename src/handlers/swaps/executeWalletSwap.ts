import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const executeWalletSwap: Handler<'executeWalletSwap'> = async () => {
  throw notImplemented('executeWalletSwap');
};
