import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../operation-context.ts';

export const getFiatDepositAccount: Handler<'getFiatDepositAccount'> = async () => {
  throw notImplemented('getFiatDepositAccount');
};
