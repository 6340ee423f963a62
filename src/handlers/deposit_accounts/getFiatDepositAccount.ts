import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const getFiatDepositAccount: Handler<'getFiatDepositAccount'> = async () => {
  throw notImplemented('getFiatDepositAccount');
};
