import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const getWalletAction: Handler<'getWalletAction'> = async () => {
  throw notImplemented('getWalletAction');
};
