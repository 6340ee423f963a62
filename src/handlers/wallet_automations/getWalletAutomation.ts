import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const getWalletAutomation: Handler<'getWalletAutomation'> = async () => {
  throw notImplemented('getWalletAutomation');
};
