import { listTransactionsByReference as listByReference } from '../../domain/money/transactions/find-transaction.ts';
import { transactionView } from '../../domain/money/transactions/transaction-view.ts';
import type { Handler } from '../../operation-context.ts';

export const listTransactionsByReference: Handler<'listTransactionsByReference'> = async (
  { query },
  context,
) => ({ transactions: (await listByReference(context, query.reference_id)).map(transactionView) });
