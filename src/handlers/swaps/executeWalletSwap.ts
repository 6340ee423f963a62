import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../operation-context.ts';

export const executeWalletSwap: Handler<'executeWalletSwap'> = async () => {
  throw notImplemented('executeWalletSwap');
};
