import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const verifyOauthDevice: Handler<'verifyOauthDevice'> = async () => {
  throw notImplemented('verifyOauthDevice');
};
