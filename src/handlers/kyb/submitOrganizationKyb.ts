import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../operation-context.ts';

export const submitOrganizationKyb: Handler<'submitOrganizationKyb'> = async () => {
  throw notImplemented('submitOrganizationKyb');
};
