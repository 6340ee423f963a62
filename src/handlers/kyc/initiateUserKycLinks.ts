import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const initiateUserKycLinks: Handler<'initiateUserKycLinks'> = async () => {
  throw notImplemented('initiateUserKycLinks');
};
