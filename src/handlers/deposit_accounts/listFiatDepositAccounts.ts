import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const listFiatDepositAccounts: Handler<'listFiatDepositAccounts'> = async () => {
  throw notImplemented('listFiatDepositAccounts');
};
