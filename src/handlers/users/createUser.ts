import { createUser } from '../../domain/wallets/users/create-user.ts';
import { userView } from '../../domain/wallets/users/user-view.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'createUser'> = async ({ body }, context) =>
  userView(await createUser(context, body));
