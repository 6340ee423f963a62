import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../operation-context.ts';

export const getUserExternalFiatAccount: Handler<'getUserExternalFiatAccount'> = async () => {
  throw notImplemented('getUserExternalFiatAccount');
};
