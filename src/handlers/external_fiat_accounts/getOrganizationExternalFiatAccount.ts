import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../operation-context.ts';

export const getOrganizationExternalFiatAccount: Handler<'getOrganizationExternalFiatAccount'> = async () => {
  throw notImplemented('getOrganizationExternalFiatAccount');
};
