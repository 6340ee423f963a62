import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const listUserExternalFiatAccounts: Handler<'listUserExternalFiatAccounts'> = async () => {
  throw notImplemented('listUserExternalFiatAccounts');
};
