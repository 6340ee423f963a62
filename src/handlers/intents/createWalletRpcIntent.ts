import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const createWalletRpcIntent: Handler<'createWalletRpcIntent'> = async () => {
  throw notImplemented('createWalletRpcIntent');
};
