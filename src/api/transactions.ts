import { findTransaction, transactionView } from '../domain/money/transactions/find-transaction.ts';
import { listTransactionsByReference as listTransactionsByReferenceVerb } from '../domain/money/transactions/list-transactions.ts';
import type { Handler } from '../ports/operation-context.ts';

export const listTransactionsByReference: Handler<'listTransactionsByReference'> = async (
  { query },
  context,
) => ({
  transactions: (await listTransactionsByReferenceVerb(context, query.reference_id)).map(transactionView),
});

export const getTransaction: Handler<'getTransaction'> = async ({ path }, context) =>
  transactionView(await findTransaction(context, path.transaction_id));
