import { authenticateWallets as authenticate } from '../../domain/wallets/user-keys/authenticate-wallets.ts';
import type { Handler } from '../../operation-context.ts';

export const authenticateWallets: Handler<'authenticateWallets'> = async ({ body }, context) =>
  authenticate(context, body);
