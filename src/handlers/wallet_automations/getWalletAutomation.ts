import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../operation-context.ts';

export const getWalletAutomation: Handler<'getWalletAutomation'> = async () => {
  throw notImplemented('getWalletAutomation');
};
