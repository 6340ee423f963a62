import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const getCryptoDepositConfig: Handler<'getCryptoDepositConfig'> = async () => {
  throw notImplemented('getCryptoDepositConfig');
};
