import { listCardTransactions } from '../../domain/money/cards/card-transactions.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'listCardTransactions'> = ({ path, query }, context) =>
  listCardTransactions(context, path.card_id, query);
