import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const listWalletAutomations: Handler<'listWalletAutomations'> = async () => {
  throw notImplemented('listWalletAutomations');
};
