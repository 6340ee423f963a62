import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'initiateUserKycTos'> = async () => {
  throw notImplemented('initiateUserKycTos');
};
