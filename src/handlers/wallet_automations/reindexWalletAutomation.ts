import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const reindexWalletAutomation: Handler<'reindexWalletAutomation'> = async () => {
  throw notImplemented('reindexWalletAutomation');
};
