import { batchCreateUsers } from '../../domain/wallets/users/batch-create-users.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'batchCreateUsers'> = async ({ body }, context) => ({
  results: await batchCreateUsers(context, body.users),
});
