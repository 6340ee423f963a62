import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../operation-context.ts';

export const deleteUserExternalFiatAccount: Handler<'deleteUserExternalFiatAccount'> = async () => {
  throw notImplemented('deleteUserExternalFiatAccount');
};
