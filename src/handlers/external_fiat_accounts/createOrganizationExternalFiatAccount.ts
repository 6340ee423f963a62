import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const createOrganizationExternalFiatAccount: Handler<
  'createOrganizationExternalFiatAccount'
> = async () => {
  throw notImplemented('createOrganizationExternalFiatAccount');
};
