import { authenticateWalletIntents as authenticate } from '../../domain/wallets/user-keys/authenticate-wallets.ts';
import type { Handler } from '../../operation-context.ts';

export const authenticateWalletIntents: Handler<'authenticateWalletIntents'> = async ({ body }, context) =>
  authenticate(context, body);
