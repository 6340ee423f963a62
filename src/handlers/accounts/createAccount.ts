import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const createAccount: Handler<'createAccount'> = async () => {
  throw notImplemented('createAccount');
};
