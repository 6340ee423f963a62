import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const initiateOrganizationKybLinks: Handler<'initiateOrganizationKybLinks'> = async () => {
  throw notImplemented('initiateOrganizationKybLinks');
};
