import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../operation-context.ts';

export const authorizeOauthDevice: Handler<'authorizeOauthDevice'> = async () => {
  throw notImplemented('authorizeOauthDevice');
};
