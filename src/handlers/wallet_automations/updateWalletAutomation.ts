import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const updateWalletAutomation: Handler<'updateWalletAutomation'> = async () => {
  throw notImplemented('updateWalletAutomation');
};
