import { invalidQuery, notFound } from '../../../errors.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { findPage } from '../../../storage/find-page.ts';
import { prepareQuery } from '../../prepared-query.ts';
import { TransactionEntity } from './transaction.entity.ts';
import { type TransactionRow, transactionColumns } from './transaction-row.ts';

// HOT: jobs of several processes claim transactions and move them from status to status. No bench case covers it.

type FindContext = Pick<OperationContext, 'app' | 'em'>;

const selectById = prepareQuery<{ appId: string; id: string }, TransactionRow>((database, { appId, id }) =>
  database
    .selectFrom('transactions')
    .select(transactionColumns)
    .where('id', '=', id)
    .where('app_id', '=', appId)
    .$castTo<TransactionRow>(),
);

/**
 * A transaction of the app.
 *
 * @throws ApiError not_found
 */
export async function findTransaction({ app, em }: FindContext, id: string): Promise<TransactionRow> {
  const {
    rows: [row],
  } = await selectById(em, { appId: app.id, id });
  if (row === undefined) throw notFound('Transaction');
  return row;
}

const selectByReference = prepareQuery<{ appId: string; referenceId: string }, TransactionRow>(
  (database, { appId, referenceId }) =>
    database
      .selectFrom('transactions')
      .select(transactionColumns)
      .where('app_id', '=', appId)
      .where('reference_id', '=', referenceId)
      .orderBy('created_at_ms', 'desc')
      .orderBy('id', 'desc')
      .$castTo<TransactionRow>(),
);

/** The app's transactions that were sent with a reference, newest first. */
export async function listTransactionsByReference(
  { app, em }: FindContext,
  referenceId: string,
): Promise<readonly TransactionRow[]> {
  // PostgreSQL text cannot contain U+0000, so no stored reference matches.
  if (referenceId.includes('\0')) return [];
  return (await selectByReference(em, { appId: app.id, referenceId })).rows;
}

/**
 * One page of the transactions of all wallets and apps, newest first. For a sandbox: no index has this order.
 *
 * @throws ApiError invalid_data for an unknown cursor.
 */
export async function listEveryTransaction(
  em: OperationContext['em'],
  { cursor, limit = 100 }: { readonly cursor?: string | undefined; readonly limit?: number | undefined },
) {
  const after = cursor === undefined ? undefined : await em.findOne(TransactionEntity, { id: cursor });
  if (after === null) throw invalidQuery('cursor', 'expected `next_cursor` of an earlier page');
  return findPage(em, TransactionEntity, {}, { after, limit });
}
