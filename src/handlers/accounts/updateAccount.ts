import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const updateAccount: Handler<'updateAccount'> = async () => {
  throw notImplemented('updateAccount');
};
