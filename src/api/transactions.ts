import * as findTransactionVerbs from '../domain/money/transactions/find-transaction.ts';
import { findTransaction, transactionView } from '../domain/money/transactions/find-transaction.ts';
import type { Handler } from '../ports/operation-context.ts';

export const listTransactionsByReference: Handler<'listTransactionsByReference'> = async (
  { query },
  context,
) => ({
  transactions: (await findTransactionVerbs.listTransactionsByReference(context, query.reference_id)).map(
    transactionView,
  ),
});

export const getTransaction: Handler<'getTransaction'> = async ({ path }, context) =>
  transactionView(await findTransaction(context, path.transaction_id));
