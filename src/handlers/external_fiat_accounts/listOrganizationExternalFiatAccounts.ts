import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'listOrganizationExternalFiatAccounts'> = async () => {
  throw notImplemented('listOrganizationExternalFiatAccounts');
};
