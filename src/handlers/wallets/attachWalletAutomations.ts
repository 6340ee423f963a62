import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const attachWalletAutomations: Handler<'attachWalletAutomations'> = async () => {
  throw notImplemented('attachWalletAutomations');
};
