import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const getOrganizationExternalFiatAccount: Handler<'getOrganizationExternalFiatAccount'> = async () => {
  throw notImplemented('getOrganizationExternalFiatAccount');
};
