import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const getWalletTransactions: Handler<'getWalletTransactions'> = async () => {
  throw notImplemented('getWalletTransactions');
};
