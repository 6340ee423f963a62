import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'getOrganizationExternalFiatAccount'> = async () => {
  throw notImplemented('getOrganizationExternalFiatAccount');
};
