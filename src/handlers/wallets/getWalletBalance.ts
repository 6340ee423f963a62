import { getWalletBalance } from '../../domain/wallets/balances/wallet-balance.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'getWalletBalance'> = async ({ path, query }, context) =>
  getWalletBalance(context, path.wallet_id, query);
