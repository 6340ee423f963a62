import { getWalletBalance as read } from '../../domain/wallets/balances/wallet-balance.ts';
import type { Handler } from '../../operation-context.ts';

export const getWalletBalance: Handler<'getWalletBalance'> = async ({ path, query }, context) =>
  read(context, path.wallet_id, query);
