import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const getUserExternalFiatAccount: Handler<'getUserExternalFiatAccount'> = async () => {
  throw notImplemented('getUserExternalFiatAccount');
};
