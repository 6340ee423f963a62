import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../operation-context.ts';

export const initiateUserKycLinks: Handler<'initiateUserKycLinks'> = async () => {
  throw notImplemented('initiateUserKycLinks');
};
