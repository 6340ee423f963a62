import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../operation-context.ts';

export const getCryptoDepositConfig: Handler<'getCryptoDepositConfig'> = async () => {
  throw notImplemented('getCryptoDepositConfig');
};
