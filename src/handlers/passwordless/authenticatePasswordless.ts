import type { AccountKey } from '../../domain/access/user-records/find-user.ts';
import { findTestAccount, logInWithCode } from '../../domain/wallets/tokens/log-in-with-code.ts';
import type { Preparation, PreparedHandler } from '../../operation-context.ts';

// The code is opened here, because the vault may be slow.
export const prepare: Preparation<'authenticatePasswordless', AccountKey> = async ({ body }, context) =>
  findTestAccount(context, body);

export const run: PreparedHandler<'authenticatePasswordless', AccountKey> = async (
  { body },
  context,
  prepared,
) => logInWithCode(context, body, prepared);
