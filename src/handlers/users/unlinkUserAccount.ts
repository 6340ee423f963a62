import { unlinkAccount } from '../../domain/wallets/users/unlink-account.ts';
import { userView } from '../../domain/wallets/users/user-view.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'unlinkUserAccount'> = async ({ path, body }, context) =>
  userView(await unlinkAccount(context, path.user_id, body));
