import { unlinkAccount } from '../../domain/users/unlink-account.ts';
import { userView } from '../../domain/users/user-view.ts';
import type { Handler } from '../../services.ts';

export const unlinkUserAccount: Handler<'unlinkUserAccount'> = async ({ path, body }, context) =>
  userView(await unlinkAccount(context, path.user_id, body));
