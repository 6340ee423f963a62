import { revokeGrant } from '../../domain/wallets/oauth/grants.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'revokeOauthGrant'> = async ({ path }, context) => {
  await revokeGrant(context, path.grant_id);
  return { success: true };
};
