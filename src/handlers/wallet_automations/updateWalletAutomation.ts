import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../operation-context.ts';

export const updateWalletAutomation: Handler<'updateWalletAutomation'> = async () => {
  throw notImplemented('updateWalletAutomation');
};
