import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const createWalletAutomation: Handler<'createWalletAutomation'> = async () => {
  throw notImplemented('createWalletAutomation');
};
