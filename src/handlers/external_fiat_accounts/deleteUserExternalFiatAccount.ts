import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const deleteUserExternalFiatAccount: Handler<'deleteUserExternalFiatAccount'> = async () => {
  throw notImplemented('deleteUserExternalFiatAccount');
};
