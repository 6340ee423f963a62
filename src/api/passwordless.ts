import type { AccountKey } from '../domain/access/user-records/find-user.ts';
import { findTestAccount, logInWithCode } from '../domain/wallets/tokens/log-in-with-code.ts';
import type { PlannedHandler } from '../ports/operation-context.ts';

// The plan opens the stored code, because the key store may be slow.
export const authenticatePasswordless: PlannedHandler<'authenticatePasswordless', AccountKey> = {
  plan: async ({ body }, context) => findTestAccount(context, body),
  run: async ({ body }, context, planned) => logInWithCode(context, body, planned),
};
