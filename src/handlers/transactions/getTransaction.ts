import { findTransaction } from '../../domain/transactions/find-transaction.ts';
import { transactionView } from '../../domain/transactions/transaction-view.ts';
import type { Handler } from '../../services.ts';

export const getTransaction: Handler<'getTransaction'> = async ({ path }, context) =>
  transactionView(await findTransaction(context, path.transaction_id));
