import { getAccountBalance as read } from '../../domain/wallets/accounts/account-balance.ts';
import type { Handler } from '../../operation-context.ts';

export const getAccountBalance: Handler<'getAccountBalance'> = async ({ path, query }, context) =>
  read(context, path.account_id, { isTestnet: query.testnet_mode ?? false });
