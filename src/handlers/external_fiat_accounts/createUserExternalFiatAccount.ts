import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../operation-context.ts';

export const createUserExternalFiatAccount: Handler<'createUserExternalFiatAccount'> = async () => {
  throw notImplemented('createUserExternalFiatAccount');
};
