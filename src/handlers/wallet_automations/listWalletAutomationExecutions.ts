import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'listWalletAutomationExecutions'> = async () => {
  throw notImplemented('listWalletAutomationExecutions');
};
