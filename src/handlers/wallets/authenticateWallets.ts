import {
  type AuthenticatedUser,
  authenticateUser,
} from '../../domain/wallets/user-keys/authenticate-user.ts';
import { authenticateWallets } from '../../domain/wallets/user-keys/authenticate-wallets.ts';
import type { Preparation, PreparedHandler } from '../../operation-context.ts';

export const prepare: Preparation<'authenticateWallets', AuthenticatedUser> = ({ body }, context) =>
  authenticateUser(context, body.user_jwt);

export const run: PreparedHandler<'authenticateWallets', AuthenticatedUser> = ({ body }, context, prepared) =>
  authenticateWallets(context, { body, prepared });
