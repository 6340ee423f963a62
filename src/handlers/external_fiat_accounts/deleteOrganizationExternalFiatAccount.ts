import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../operation-context.ts';

export const deleteOrganizationExternalFiatAccount: Handler<
  'deleteOrganizationExternalFiatAccount'
> = async () => {
  throw notImplemented('deleteOrganizationExternalFiatAccount');
};
