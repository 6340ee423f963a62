import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const quoteCryptoDeposit: Handler<'quoteCryptoDeposit'> = async () => {
  throw notImplemented('quoteCryptoDeposit');
};
