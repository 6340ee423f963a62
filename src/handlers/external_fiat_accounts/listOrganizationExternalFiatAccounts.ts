import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const listOrganizationExternalFiatAccounts: Handler<
  'listOrganizationExternalFiatAccounts'
> = async () => {
  throw notImplemented('listOrganizationExternalFiatAccounts');
};
