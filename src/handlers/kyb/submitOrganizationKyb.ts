import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const submitOrganizationKyb: Handler<'submitOrganizationKyb'> = async () => {
  throw notImplemented('submitOrganizationKyb');
};
