import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const detachWalletAutomations: Handler<'detachWalletAutomations'> = async () => {
  throw notImplemented('detachWalletAutomations');
};
