import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../operation-context.ts';

export const listOrganizationExternalFiatAccounts: Handler<
  'listOrganizationExternalFiatAccounts'
> = async () => {
  throw notImplemented('listOrganizationExternalFiatAccounts');
};
