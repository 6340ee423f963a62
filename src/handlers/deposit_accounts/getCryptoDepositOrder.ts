import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../operation-context.ts';

export const getCryptoDepositOrder: Handler<'getCryptoDepositOrder'> = async () => {
  throw notImplemented('getCryptoDepositOrder');
};
