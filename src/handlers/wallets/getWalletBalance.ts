import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const getWalletBalance: Handler<'getWalletBalance'> = async () => {
  throw notImplemented('getWalletBalance');
};
