import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../operation-context.ts';

export const listOauthGrants: Handler<'listOauthGrants'> = async () => {
  throw notImplemented('listOauthGrants');
};
