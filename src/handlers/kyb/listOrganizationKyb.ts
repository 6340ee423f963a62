import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const listOrganizationKyb: Handler<'listOrganizationKyb'> = async () => {
  throw notImplemented('listOrganizationKyb');
};
