import { listEveryTransaction } from '../../domain/money/transactions/find-transaction.ts';
import type { Handler } from '../control-plane.ts';

export const run: Handler<'listSandboxTransactions'> = async ({ query }, { read }) => {
  const { page, nextCursor } = await read((em) => listEveryTransaction(em, query));
  return {
    data: page.map(({ id, appId, walletId, caip2, transactionHash, status, createdAtMs }) => ({
      ...{ id, app_id: appId, wallet_id: walletId, caip2 },
      ...{ transaction_hash: transactionHash, status, created_at_ms: createdAtMs },
    })),
    next_cursor: nextCursor,
  };
};
