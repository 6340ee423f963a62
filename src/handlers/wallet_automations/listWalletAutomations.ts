import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../operation-context.ts';

export const listWalletAutomations: Handler<'listWalletAutomations'> = async () => {
  throw notImplemented('listWalletAutomations');
};
