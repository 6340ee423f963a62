import { pregenerateWallets } from '../../domain/users/pregenerate-wallets.ts';
import { userView } from '../../domain/users/user-view.ts';
import type { Handler } from '../../services.ts';

export const pregenerateUserWallets: Handler<'pregenerateUserWallets'> = async ({ path, body }, context) =>
  userView(await pregenerateWallets(context, path.user_id, body.wallets));
