import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const listWalletAutomationExecutions: Handler<'listWalletAutomationExecutions'> = async () => {
  throw notImplemented('listWalletAutomationExecutions');
};
