import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const initiateUserKycTos: Handler<'initiateUserKycTos'> = async () => {
  throw notImplemented('initiateUserKycTos');
};
