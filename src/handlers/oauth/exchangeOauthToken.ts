import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../operation-context.ts';

export const exchangeOauthToken: Handler<'exchangeOauthToken'> = async () => {
  throw notImplemented('exchangeOauthToken');
};
