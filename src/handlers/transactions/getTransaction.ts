import { findTransaction } from '../../domain/money/transactions/find-transaction.ts';
import { transactionView } from '../../domain/money/transactions/transaction-view.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'getTransaction'> = async ({ path }, context) =>
  transactionView(await findTransaction(context, path.transaction_id));
