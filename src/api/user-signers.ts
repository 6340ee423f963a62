import {
  type AuthenticatedUser,
  authenticateUser,
  authenticateWallets,
} from '../domain/wallets/user-keys/user-key.ts';
import type { PlannedHandler } from '../ports/operation-context.ts';

export const authenticateUserSigner: PlannedHandler<'authenticateUserSigner', AuthenticatedUser> = {
  plan: ({ body }, context) => authenticateUser(context, body.user_jwt),
  run: ({ body }, context, planned) => authenticateWallets(context, { body, planned }),
};
