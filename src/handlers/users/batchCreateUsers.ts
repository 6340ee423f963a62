import { batchCreateUsers as makeAll } from '../../domain/wallets/users/batch-create-users.ts';
import type { Handler } from '../../operation-context.ts';

export const batchCreateUsers: Handler<'batchCreateUsers'> = async ({ body }, context) => ({
  results: await makeAll(context, body.users),
});
