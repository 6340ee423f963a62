import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const exchangeOauthToken: Handler<'exchangeOauthToken'> = async () => {
  throw notImplemented('exchangeOauthToken');
};
