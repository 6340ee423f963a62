import { listWalletTransactions } from '../../domain/money/transactions/wallet-transactions.ts';
import type { Handler } from '../../operation-context.ts';

export const getWalletTransactions: Handler<'getWalletTransactions'> = ({ path, query }, context) =>
  listWalletTransactions(context, path.wallet_id, query);
