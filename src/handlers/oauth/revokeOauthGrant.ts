import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const revokeOauthGrant: Handler<'revokeOauthGrant'> = async () => {
  throw notImplemented('revokeOauthGrant');
};
