import {
  type AuthenticatedUser,
  authenticateUser,
} from '../../domain/wallets/user-keys/authenticate-user.ts';
import { authenticateWalletIntents } from '../../domain/wallets/user-keys/authenticate-wallets.ts';
import type { Preparation, PreparedHandler } from '../../operation-context.ts';

export const prepare: Preparation<'authenticateWalletIntents', AuthenticatedUser> = ({ body }, context) =>
  authenticateUser(context, body.user_jwt);

export const run: PreparedHandler<'authenticateWalletIntents', AuthenticatedUser> = (
  { body },
  context,
  prepared,
) => authenticateWalletIntents(context, { body, prepared });
