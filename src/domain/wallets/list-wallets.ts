import { type SelectQueryBuilder, sql } from 'kysely';
import { InvalidPublicKeyError, parseP256PublicKey } from '../../crypto/p256.ts';
import { invalidQuery } from '../../errors.ts';
import type { OperationContext } from '../../services.ts';
import type { Tables } from '../../storage/entities.ts';
import { prepareQuery } from '../../storage/prepared-query.ts';
import { normalizeAddress } from './normalize-address.ts';
import { type WalletRow, walletColumns } from './wallet-row.ts';

const MAX_PAGE = 100;

export interface WalletFilter {
  chainType?: string | undefined;
  /** Wallets whose owner quorum has this user among its members. Not together with `authorizationKey`. */
  userId?: string | undefined;
  /** The same of a P-256 public key, base64 DER or PEM. */
  authorizationKey?: string | undefined;
  externalId?: string | undefined;
  address?: string | undefined;
  entityId?: string | undefined;
  includeArchived?: boolean | undefined;
}

export interface WalletPage {
  wallets: WalletRow[];
  nextCursor: string | null;
}

type WalletQuery = SelectQueryBuilder<Tables, 'wallets', WalletRow>;

/**
 * One page of the app's wallets, newest first.
 *
 * @param cursor the `nextCursor` of the page before; `limit` is 1 to 100, 100 when left out.
 * @throws ApiError invalid_data for a cursor of no wallet, a key that is none, both owners at once.
 */
export async function listWallets(
  context: Pick<OperationContext, 'app' | 'em'>,
  filter: WalletFilter,
  { cursor, limit = MAX_PAGE }: { cursor?: string | undefined; limit?: number | undefined },
): Promise<WalletPage> {
  const db = context.em.getKysely<Tables>();
  const owners = await ownersOf(context, filter);
  if (owners?.length === 0) return { wallets: [], nextCursor: null };

  let query: WalletQuery = db
    .selectFrom('wallets')
    .select(walletColumns)
    .where('app_id', '=', context.app.id);
  if (filter.includeArchived !== true) query = query.where('archived_at_ms', 'is', null);
  if (filter.chainType !== undefined) query = query.where('chain_type', '=', filter.chainType);
  if (filter.externalId !== undefined) query = query.where('external_id', '=', filter.externalId);
  if (filter.address !== undefined) query = query.where('address', '=', normalizeAddress(filter.address));
  if (filter.entityId !== undefined) query = query.where('entity_id', '=', filter.entityId);
  if (owners !== undefined) query = whereOwner(query, owners);
  if (cursor !== undefined) query = await olderThan(context, query, cursor);

  // One more than asked for tells whether another page follows.
  const rows = await query
    .orderBy('created_at_ms', 'desc')
    .orderBy('id', 'desc')
    .limit(limit + 1)
    .execute();
  const wallets = rows.slice(0, limit);
  return { wallets, nextCursor: rows.length > limit ? (wallets.at(-1)?.id ?? null) : null };
}

/** One owner keeps the order of the index; several have to be merged. */
function whereOwner(query: WalletQuery, owners: readonly string[]): WalletQuery {
  const [first = ''] = owners;
  return owners.length === 1 ? query.where('owner_id', '=', first) : query.where('owner_id', 'in', owners);
}

const selectAge = prepareQuery<{ appId: string; id: string }, Pick<WalletRow, 'created_at_ms'>>(
  (database, { appId, id }) =>
    database.selectFrom('wallets').select('created_at_ms').where('id', '=', id).where('app_id', '=', appId),
);

/** Row value, which both databases answer from the index; the same written out with `or` makes them scan. */
async function olderThan(
  { app, em }: Pick<OperationContext, 'app' | 'em'>,
  query: WalletQuery,
  cursor: string,
): Promise<WalletQuery> {
  const {
    rows: [last],
  } = await selectAge(em, { appId: app.id, id: cursor });
  if (last === undefined) throw invalidQuery('cursor', 'expected the `next_cursor` of a page before');
  return query.where(sql<boolean>`(created_at_ms, id) < (${last.created_at_ms}, ${cursor})`);
}

/** The key quorums that the filter's user or key is a member of; undefined when it asks for neither. */
async function ownersOf(
  { app, em }: Pick<OperationContext, 'app' | 'em'>,
  { userId, authorizationKey }: WalletFilter,
): Promise<string[] | undefined> {
  if (userId === undefined && authorizationKey === undefined) return undefined;
  if (userId !== undefined && authorizationKey !== undefined) {
    throw invalidQuery('authorization_key', 'expected `user_id` or `authorization_key`, not both');
  }
  const rows = await em
    .getKysely<Tables>()
    .selectFrom('key_quorum_members')
    .innerJoin('key_quorums', 'key_quorums.id', 'key_quorum_members.key_quorum_id')
    .select('key_quorum_members.key_quorum_id')
    .where('key_quorums.app_id', '=', app.id)
    .where('member', '=', userId ?? parseKey(authorizationKey as string))
    .where('kind', '=', userId === undefined ? 'public_key' : 'user')
    .execute();
  return rows.map((row) => row.key_quorum_id);
}

function parseKey(authorizationKey: string): string {
  try {
    return parseP256PublicKey(authorizationKey);
  } catch (error) {
    if (error instanceof InvalidPublicKeyError) throw invalidQuery('authorization_key', error.message);
    throw error;
  }
}
