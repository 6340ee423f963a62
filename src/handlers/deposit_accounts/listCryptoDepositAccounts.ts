import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const listCryptoDepositAccounts: Handler<'listCryptoDepositAccounts'> = async () => {
  throw notImplemented('listCryptoDepositAccounts');
};
