import { listWalletTransactions } from '../../domain/money/transactions/wallet-transactions.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'getWalletTransactions'> = ({ path, query }, context) =>
  listWalletTransactions(context, path.wallet_id, query);
