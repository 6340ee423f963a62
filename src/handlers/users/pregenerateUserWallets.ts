import { userView } from '../../domain/wallets/users/user-view.ts';
import { pregenerateWallets } from '../../domain/wallets/users/user-wallets.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'pregenerateUserWallets'> = async ({ path, body }, context) =>
  userView(await pregenerateWallets(context, path.user_id, body.wallets));
