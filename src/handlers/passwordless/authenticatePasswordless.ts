import type { AccountKey } from '../../domain/access/user-records/find-user.ts';
import { findTestAccount, logInWithCode } from '../../domain/wallets/tokens/log-in-with-code.ts';
import type { Preparation, PreparedHandler } from '../../operation-context.ts';

type Id = 'authenticatePasswordless';

// The code is opened here, because the vault may be slow.
export const prepare: Preparation<Id, AccountKey> = async ({ body }, context) =>
  findTestAccount(context, body);

export const run: PreparedHandler<Id, AccountKey> = async ({ body }, context, prepared) =>
  logInWithCode(context, body, prepared);
