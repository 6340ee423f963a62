import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const listAccounts: Handler<'listAccounts'> = async () => {
  throw notImplemented('listAccounts');
};
