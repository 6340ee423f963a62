import { listTransactionsByReference } from '../../domain/money/transactions/find-transaction.ts';
import { transactionView } from '../../domain/money/transactions/transaction-view.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'listTransactionsByReference'> = async ({ query }, context) => ({
  transactions: (await listTransactionsByReference(context, query.reference_id)).map(transactionView),
});
