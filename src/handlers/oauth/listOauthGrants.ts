import { listGrants } from '../../domain/wallets/oauth/grants.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'listOauthGrants'> = async (_input, context) => ({
  data: await listGrants(context),
});
