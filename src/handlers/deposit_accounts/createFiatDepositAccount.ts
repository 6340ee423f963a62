import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../operation-context.ts';

export const createFiatDepositAccount: Handler<'createFiatDepositAccount'> = async () => {
  throw notImplemented('createFiatDepositAccount');
};
