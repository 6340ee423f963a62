import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../operation-context.ts';

export const listWalletAutomationExecutions: Handler<'listWalletAutomationExecutions'> = async () => {
  throw notImplemented('listWalletAutomationExecutions');
};
