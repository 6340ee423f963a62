import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const updateWalletIntent: Handler<'updateWalletIntent'> = async () => {
  throw notImplemented('updateWalletIntent');
};
