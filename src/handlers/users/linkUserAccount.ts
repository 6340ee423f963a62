import { linkAccount } from '../../domain/wallets/users/link-account.ts';
import { userView } from '../../domain/wallets/users/user-view.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'linkUserAccount'> = async ({ path, body }, context) =>
  userView(await linkAccount(context, path.user_id, body));
