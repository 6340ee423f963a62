import { invalidQuery, notFound } from '../../../errors.ts';
import type { Transaction } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { olderThan } from '../../../storage/find-page.ts';
import { prepareQuery } from '../../prepared-query.ts';
import type { Tables } from '../../tables.ts';
import type { WalletRow } from '../../wallets/wallets/wallet.entity.ts';
import type { Asked } from './list-transactions.ts';
import { TransactionEntity, type TransactionRow, transactionColumns } from './transaction.entity.ts';

// KYSELY: see `TransactionRow` in `transaction.entity.ts`.

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
 * Finds a transaction of the app.
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

/** Converts a transaction to wire form. */
export function transactionView(row: TransactionRow): Transaction {
  return {
    id: row.id,
    wallet_id: row.wallet_id,
    caip2: row.caip2,
    transaction_hash: row.transaction_hash,
    ...(row.user_operation_hash === null ? {} : { user_operation_hash: row.user_operation_hash }),
    status: row.status,
    created_at: row.created_at_ms,
    reference_id: row.reference_id,
    sponsored: row.is_sponsored === 1,
  };
}

/** The end of a page in each of the two lists that are merged: our own transactions, and the chain's transfers. */
export interface TransactionCursor {
  /** The last of our own transactions on the page and the pages before it; undefined if there were none. */
  readonly row: { readonly createdAtMs: number; readonly id: string } | undefined;
  /**
   * The position of the last transfer of the chain on the page and the pages before it; undefined if there were none.
   */
  readonly position: string | undefined;
}

/** Encodes both positions as one opaque string. */
export function writeCursor({ row, position }: TransactionCursor): string {
  const parts = [row?.createdAtMs ?? null, row?.id ?? null, position ?? null];
  return Buffer.from(JSON.stringify(parts)).toString('base64url');
}

/**
 * Decodes a cursor that `writeCursor` has encoded. Without a string, returns the beginning of both lists.
 *
 * @throws ApiError invalid_data
 */
export function readCursor(text: string | undefined): TransactionCursor {
  if (text === undefined) return { row: undefined, position: undefined };
  const parts = parse(text);
  if (parts === undefined) throw invalidQuery('cursor', 'expected the `next_cursor` of a previous page');
  const [createdAtMs, id, position] = parts;
  return {
    row: createdAtMs === null || id === null ? undefined : { createdAtMs, id },
    position: position ?? undefined,
  };
}

const ID = /^[0-9a-z]{1,64}$/;
// The format of transfer positions.
const POSITION = /^\d{1,15}$/;

function parse(text: string): [number | null, string | null, string | null] | undefined {
  try {
    const parts: unknown = JSON.parse(Buffer.from(text, 'base64url').toString());
    if (!Array.isArray(parts) || parts.length !== 3) return undefined;
    const [createdAtMs, id, position] = parts as unknown[];
    if (createdAtMs !== null && !Number.isSafeInteger(createdAtMs)) return undefined;
    if (id !== null && !(typeof id === 'string' && ID.test(id))) return undefined;
    if (position !== null && !(typeof position === 'string' && POSITION.test(position))) return undefined;
    return parts as [number | null, string | null, string | null];
  } catch {
    return undefined;
  }
}

/** Selects the wallet's own transactions on a chain that are listed under one of the assets, newest first. */
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
  if (after !== undefined) query = query.where(olderThan(after.createdAtMs, after.id));
  return query
    .orderBy('created_at_ms', 'desc')
    .orderBy('id', 'desc')
    .limit(limit)
    .$castTo<TransactionRow>()
    .execute();
}

/** Returns those of the hashes that belong to the wallet's own transactions. */
export async function selectHashes(
  { em }: Pick<OperationContext, 'em'>,
  { id }: Pick<WalletRow, 'id'>,
  hashes: readonly string[],
): Promise<ReadonlySet<string | null>> {
  if (hashes.length === 0) return new Set();
  const rows = await em.find(
    TransactionEntity,
    { walletId: id, transactionHash: { $in: [...hashes] } },
    { fields: ['transactionHash'], disableIdentityMap: true },
  );
  return new Set(rows.map((row) => row.transactionHash));
}
