import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const initiateOrganizationKybTos: Handler<'initiateOrganizationKybTos'> = async () => {
  throw notImplemented('initiateOrganizationKybTos');
};
