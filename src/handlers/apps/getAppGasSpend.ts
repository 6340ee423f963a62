import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const getAppGasSpend: Handler<'getAppGasSpend'> = async () => {
  throw notImplemented('getAppGasSpend');
};
