import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../operation-context.ts';

export const listCryptoDepositAccounts: Handler<'listCryptoDepositAccounts'> = async () => {
  throw notImplemented('listCryptoDepositAccounts');
};
