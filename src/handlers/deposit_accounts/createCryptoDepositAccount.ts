import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const createCryptoDepositAccount: Handler<'createCryptoDepositAccount'> = async () => {
  throw notImplemented('createCryptoDepositAccount');
};
