import * as findTransactionModule from '../domain/money/transactions/find-transaction.ts';
import { findTransaction } from '../domain/money/transactions/find-transaction.ts';
import { transactionView } from '../domain/money/transactions/transaction-view.ts';
import type { Handler } from '../operation-context.ts';

export const listTransactionsByReference: Handler<'listTransactionsByReference'> = async (
  { query },
  context,
) => ({
  transactions: (await findTransactionModule.listTransactionsByReference(context, query.reference_id)).map(
    transactionView,
  ),
});

export const getTransaction: Handler<'getTransaction'> = async ({ path }, context) =>
  transactionView(await findTransaction(context, path.transaction_id));
