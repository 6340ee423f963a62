import { authenticateWallets } from '../../domain/wallets/user-keys/authenticate-wallets.ts';
import type { Handler } from '../../operation-context.ts';

export const authenticateUserSigner: Handler<'authenticateUserSigner'> = async ({ body }, context) =>
  authenticateWallets(context, body);
