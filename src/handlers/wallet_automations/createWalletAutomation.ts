import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../operation-context.ts';

export const createWalletAutomation: Handler<'createWalletAutomation'> = async () => {
  throw notImplemented('createWalletAutomation');
};
