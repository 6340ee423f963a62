import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'quoteCryptoDeposit'> = async () => {
  throw notImplemented('quoteCryptoDeposit');
};
