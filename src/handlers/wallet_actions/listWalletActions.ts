import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const listWalletActions: Handler<'listWalletActions'> = async () => {
  throw notImplemented('listWalletActions');
};
