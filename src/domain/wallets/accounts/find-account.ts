import { type Selectable, sql } from 'kysely';
import { invalidQuery, notFound } from '../../../errors.ts';
import type { OperationContext } from '../../../operation-context.ts';
import type { Tables } from '../../tables.ts';
import { type WalletRow, walletColumns } from '../wallets/wallet-row.ts';

export type AccountContext = Pick<OperationContext, 'app' | 'em'>;

/** A row of `accounts`, columns as they are stored. */
export type AccountRow = Selectable<Tables['accounts']>;

/** An account with its wallets, in the order they were added. */
export interface Account {
  readonly row: AccountRow;
  readonly wallets: readonly WalletRow[];
}

const MAX_PAGE = 100;

const columns = [
  'id',
  'app_id',
  'display_name',
  'search_name',
  'created_at_ms',
] as const satisfies readonly (keyof AccountRow)[];

/**
 * An account of the app with its wallets, archived ones included: what they hold is still the account's.
 *
 * @throws ApiError not_found
 */
export async function findAccount(context: AccountContext, id: string): Promise<Account> {
  const row = await selectAccount(context, id)?.executeTakeFirst();
  if (row === undefined) throw notFound('Account');
  return { row, wallets: (await walletsOf(context, [row.id])).get(row.id) ?? [] };
}

/**
 * An account that is about to change, held until the transaction ends.
 *
 * @throws ApiError not_found
 */
export async function findAccountForUpdate(context: AccountContext, id: string): Promise<Account> {
  const row = await selectAccount(context, id)?.forUpdate().executeTakeFirst();
  if (row === undefined) throw notFound('Account');
  return { row, wallets: (await walletsOf(context, [row.id])).get(row.id) ?? [] };
}

/**
 * One page of the app's accounts, newest first.
 *
 * CHOICE: `search` finds its text anywhere in the name, upper and lower case being the same.
 *
 * @param cursor the `nextCursor` of the page before; `limit` is 1 to 100, 100 when left out.
 * @throws ApiError invalid_data for a cursor of no account.
 */
export async function listAccounts(
  context: AccountContext,
  options: { cursor?: string | undefined; limit?: number | undefined; search?: string | undefined },
): Promise<{ accounts: Account[]; nextCursor: string | null }> {
  const { cursor, search, limit = MAX_PAGE } = options;
  let query = context.em
    .getKysely<Tables>()
    .selectFrom('accounts')
    .select(columns)
    .where('app_id', '=', context.app.id)
    .orderBy('created_at_ms', 'desc')
    .orderBy('id', 'desc')
    // One more than asked for tells whether another page follows.
    .limit(limit + 1);
  if (cursor !== undefined) {
    const last = await selectAccount(context, cursor)?.executeTakeFirst();
    if (last === undefined) throw invalidQuery('cursor', 'expected the `next_cursor` of a page before');
    query = query.where(sql<boolean>`(created_at_ms, id) < (${last.created_at_ms}, ${last.id})`);
  }
  if (search !== undefined) {
    const pattern = `%${search.toLowerCase().replaceAll(/[\\%_]/g, '\\$&')}%`;
    query = query.where(sql<boolean>`search_name like ${pattern} escape '\\'`);
  }
  const rows = await query.execute();
  const page = rows.slice(0, limit);
  const wallets = await walletsOf(
    context,
    page.map(({ id }) => id),
  );
  return {
    accounts: page.map((row) => ({ row, wallets: wallets.get(row.id) ?? [] })),
    nextCursor: rows.length > limit ? (page.at(-1)?.id ?? null) : null,
  };
}

/** Undefined when the id cannot be one of an account. */
function selectAccount({ app, em }: AccountContext, id: string) {
  if (!/^[a-z0-9]{1,64}$/.test(id)) return undefined;
  return em
    .getKysely<Tables>()
    .selectFrom('accounts')
    .select(columns)
    .where('id', '=', id)
    .where('app_id', '=', app.id);
}

async function walletsOf(
  { em }: AccountContext,
  accountIds: readonly string[],
): Promise<ReadonlyMap<string, readonly WalletRow[]>> {
  if (accountIds.length === 0) return new Map();
  const rows = await em
    .getKysely<Tables>()
    .selectFrom('account_wallets')
    .innerJoin('wallets', 'wallets.id', 'account_wallets.wallet_id')
    .select(walletColumns.map((column) => `wallets.${column}` as const))
    .select('account_wallets.account_id')
    .where('account_wallets.account_id', 'in', accountIds)
    .orderBy('account_wallets.account_id')
    .orderBy('account_wallets.position')
    .execute();
  return Map.groupBy(rows as (WalletRow & { account_id: string })[], (row) => row.account_id);
}
