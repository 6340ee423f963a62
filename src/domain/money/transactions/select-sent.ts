import { sql } from 'kysely';
import type { OperationContext } from '../../../operation-context.ts';
import type { Tables } from '../../tables.ts';
import type { WalletRow } from '../../wallets/wallets/wallet-row.ts';
import { type TransactionRow, transactionColumns } from './transaction-row.ts';
import type { Asked } from './wallet-transactions.ts';

// HOT: jobs of several processes claim transactions and move them from status to status. No bench case covers it.

/** The wallet's own transactions that moved one of the assets, newest first. */
export async function selectSent(
  { em }: Pick<OperationContext, 'em'>,
  {
    wallet,
    chain,
    assets,
    hash,
    after,
    limit,
  }: Asked & {
    readonly after: { readonly createdAtMs: number; readonly id: string } | undefined;
    readonly limit: number;
  },
): Promise<readonly TransactionRow[]> {
  const tokens = assets.map(({ tokenAddress }) => (tokenAddress ?? 'native').toLowerCase());
  const isNative = tokens.includes('native');
  let query = em
    .getKysely<Tables>()
    .selectFrom('transactions')
    .select(transactionColumns)
    .where('wallet_id', '=', wallet.id)
    .where('caip2', '=', chain.caip2)
    .where((where) =>
      where.or([
        where(where.fn<string>('lower', ['moved_token']), 'in', tokens),
        ...(isNative ? [where('moved_token', 'is', null)] : []),
      ]),
    );
  if (hash !== undefined) query = query.where('transaction_hash', '=', hash);
  if (after !== undefined) {
    query = query.where(sql<boolean>`(created_at_ms, id) < (${after.createdAtMs}, ${after.id})`);
  }
  return query
    .orderBy('created_at_ms', 'desc')
    .orderBy('id', 'desc')
    .limit(limit)
    .$castTo<TransactionRow>()
    .execute();
}

/** The hashes that belong to the wallet's own transactions. */
export async function selectHashes(
  { em }: Pick<OperationContext, 'em'>,
  { id }: Pick<WalletRow, 'id'>,
  hashes: readonly string[],
): Promise<ReadonlySet<string | null>> {
  if (hashes.length === 0) return new Set();
  const rows = await em
    .getKysely<Tables>()
    .selectFrom('transactions')
    .select('transaction_hash')
    .where('wallet_id', '=', id)
    .where('transaction_hash', 'in', hashes)
    .execute();
  return new Set(rows.map((row) => row.transaction_hash));
}
