import { getAccountBalance } from '../../domain/wallets/accounts/account-balance.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'getAccountBalance'> = async ({ path, query }, context) =>
  getAccountBalance(context, path.account_id, { isTestnet: query.testnet_mode ?? false });
