import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const authorizeOauthDevice: Handler<'authorizeOauthDevice'> = async () => {
  throw notImplemented('authorizeOauthDevice');
};
