import { logInWithCode } from '../../domain/wallets/tokens/log-in-with-code.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'authenticatePasswordless'> = async ({ body }, context) =>
  logInWithCode(context, body);
