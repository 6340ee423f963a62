import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const getNextCryptoDepositOrder: Handler<'getNextCryptoDepositOrder'> = async () => {
  throw notImplemented('getNextCryptoDepositOrder');
};
