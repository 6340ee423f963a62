import { sql } from 'kysely';
import { invalidQuery, notFound } from '../../../errors.ts';
import type { WalletActionType } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { findPage } from '../../../storage/find-page.ts';
import type { Tables } from '../../tables.ts';
import { findWallet } from '../../wallets/wallets/find-wallet.ts';
import { WalletActionEntity } from './wallet-action.entity.ts';
import { type WalletActionRow, walletActionColumns } from './wallet-action-row.ts';

// HOT: jobs of several processes claim these rows and move them from status to status. No bench case covers it.

type FindContext = Pick<OperationContext, 'app' | 'em'>;

const MAX_PAGE = 100;

/**
 * An action of a wallet. CHOICE: also for archived wallets, because their pending transactions still complete.
 *
 * @throws ApiError not_found, also for an action of another wallet.
 */
export async function findWalletAction(
  context: FindContext,
  walletId: string,
  actionId: string,
): Promise<WalletActionRow> {
  const wallet = await findWallet(context, walletId, { includeArchived: true });
  const row = await selectAction(context, wallet.id, actionId);
  if (row === undefined) throw notFound('Wallet action');
  return row;
}

/**
 * One page of a wallet's actions, newest first.
 *
 * @param options `cursor`: the `nextCursor` of the page before; `limit` is 1 to 100, 100 when left out.
 * @throws ApiError not_found; invalid_data for a cursor of no action of the wallet.
 */
export async function listWalletActions(
  context: FindContext,
  walletId: string,
  options: {
    cursor?: string | undefined;
    limit?: number | undefined;
    type?: WalletActionType | undefined;
  },
): Promise<{ actions: WalletActionRow[]; nextCursor: string | null }> {
  const { cursor, type, limit = MAX_PAGE } = options;
  const wallet = await findWallet(context, walletId, { includeArchived: true });
  let query = context.em
    .getKysely<Tables>()
    .selectFrom('wallet_actions')
    .select(walletActionColumns)
    .where('wallet_id', '=', wallet.id)
    .orderBy('created_at_ms', 'desc')
    .orderBy('id', 'desc')
    // One row more than requested shows whether another page follows.
    .limit(limit + 1);
  if (type !== undefined) query = query.where('type', '=', type);
  if (cursor !== undefined) {
    const last = await selectAction(context, wallet.id, cursor);
    if (last === undefined) throw invalidQuery('cursor', 'expected the `next_cursor` of a previous page');
    query = query.where(sql<boolean>`(created_at_ms, id) < (${last.created_at_ms}, ${last.id})`);
  }
  const rows = (await query.execute()) as WalletActionRow[];
  const actions = rows.slice(0, limit);
  return { actions, nextCursor: rows.length > limit ? (actions.at(-1)?.id ?? null) : null };
}

async function selectAction(
  { em }: FindContext,
  walletId: string,
  id: string,
): Promise<WalletActionRow | undefined> {
  const row = await em
    .getKysely<Tables>()
    .selectFrom('wallet_actions')
    .select(walletActionColumns)
    .where('id', '=', id)
    .where('wallet_id', '=', walletId)
    .executeTakeFirst();
  return row as WalletActionRow | undefined;
}

/**
 * One page of the wallet actions of all wallets and apps, newest first. For a sandbox: no index has this order.
 *
 * @throws ApiError invalid_data for an unknown cursor.
 */
export async function listEveryWalletAction(
  em: OperationContext['em'],
  { cursor, limit = 100 }: { readonly cursor?: string | undefined; readonly limit?: number | undefined },
) {
  const after = cursor === undefined ? undefined : await em.findOne(WalletActionEntity, { id: cursor });
  if (after === null) throw invalidQuery('cursor', 'expected `next_cursor` of an earlier page');
  return findPage(em, WalletActionEntity, {}, { after, limit });
}
