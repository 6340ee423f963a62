import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const getCryptoDepositOrder: Handler<'getCryptoDepositOrder'> = async () => {
  throw notImplemented('getCryptoDepositOrder');
};
