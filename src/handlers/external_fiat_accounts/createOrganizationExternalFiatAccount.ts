import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../operation-context.ts';

export const createOrganizationExternalFiatAccount: Handler<
  'createOrganizationExternalFiatAccount'
> = async () => {
  throw notImplemented('createOrganizationExternalFiatAccount');
};
