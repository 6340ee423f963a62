import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const getAccount: Handler<'getAccount'> = async () => {
  throw notImplemented('getAccount');
};
