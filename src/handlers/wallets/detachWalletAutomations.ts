import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../operation-context.ts';

export const detachWalletAutomations: Handler<'detachWalletAutomations'> = async () => {
  throw notImplemented('detachWalletAutomations');
};
