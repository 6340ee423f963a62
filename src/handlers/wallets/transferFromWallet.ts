import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const transferFromWallet: Handler<'transferFromWallet'> = async () => {
  throw notImplemented('transferFromWallet');
};
