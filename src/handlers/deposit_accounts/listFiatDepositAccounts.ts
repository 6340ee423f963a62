import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../operation-context.ts';

export const listFiatDepositAccounts: Handler<'listFiatDepositAccounts'> = async () => {
  throw notImplemented('listFiatDepositAccounts');
};
