import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../operation-context.ts';

export const initiateOrganizationKybTos: Handler<'initiateOrganizationKybTos'> = async () => {
  throw notImplemented('initiateOrganizationKybTos');
};
