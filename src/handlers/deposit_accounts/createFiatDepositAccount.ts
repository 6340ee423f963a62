import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const createFiatDepositAccount: Handler<'createFiatDepositAccount'> = async () => {
  throw notImplemented('createFiatDepositAccount');
};
