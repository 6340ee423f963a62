import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const deleteOrganizationExternalFiatAccount: Handler<
  'deleteOrganizationExternalFiatAccount'
> = async () => {
  throw notImplemented('deleteOrganizationExternalFiatAccount');
};
