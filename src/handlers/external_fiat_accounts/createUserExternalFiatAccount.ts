import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const createUserExternalFiatAccount: Handler<'createUserExternalFiatAccount'> = async () => {
  throw notImplemented('createUserExternalFiatAccount');
};
