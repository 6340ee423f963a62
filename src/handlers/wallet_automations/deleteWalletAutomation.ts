import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const deleteWalletAutomation: Handler<'deleteWalletAutomation'> = async () => {
  throw notImplemented('deleteWalletAutomation');
};
