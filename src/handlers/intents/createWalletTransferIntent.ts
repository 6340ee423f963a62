import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const createWalletTransferIntent: Handler<'createWalletTransferIntent'> = async () => {
  throw notImplemented('createWalletTransferIntent');
};
