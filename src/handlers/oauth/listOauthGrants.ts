import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const listOauthGrants: Handler<'listOauthGrants'> = async () => {
  throw notImplemented('listOauthGrants');
};
