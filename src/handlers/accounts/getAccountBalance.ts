import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const getAccountBalance: Handler<'getAccountBalance'> = async () => {
  throw notImplemented('getAccountBalance');
};
