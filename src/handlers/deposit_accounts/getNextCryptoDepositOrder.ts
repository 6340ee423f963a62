import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../operation-context.ts';

export const getNextCryptoDepositOrder: Handler<'getNextCryptoDepositOrder'> = async () => {
  throw notImplemented('getNextCryptoDepositOrder');
};
