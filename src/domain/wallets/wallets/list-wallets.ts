import { type Kysely, sql } from 'kysely';
import { normalizeAddress } from '../../../assets/normalize-address.ts';
import { InvalidPublicKeyError, parseP256PublicKey } from '../../../crypto/p256.ts';
import { invalidQuery } from '../../../errors.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { type PreparedQuery, prepareQuery } from '../../prepared-query.ts';
import type { Tables } from '../../tables.ts';
import { type WalletRow, walletColumns } from './wallet-row.ts';

// HOT: the entity manager takes 14 (SQLite) and 16 (PostgreSQL) times the CPU per page of 50 (bench `sqlite`,
// `postgres`).

const MAX_PAGE = 100;

type ListContext = Pick<OperationContext, 'app' | 'em'>;

export interface WalletFilter {
  chainType?: string | undefined;
  /** Wallets whose owner quorum has this user among its members. Not together with `authorizationKey`. */
  userId?: string | undefined;
  /** Wallets whose owner quorum has this P-256 public key among its members; base64 DER or PEM. */
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

/** The filters of a page; only requested filters are present. */
interface PageInput {
  readonly appId: string;
  readonly limit: number;
  readonly includeArchived?: true;
  readonly chainType?: string;
  readonly externalId?: string;
  readonly address?: string;
  readonly entityId?: string;
  readonly ownerId?: string;
  readonly cursor?: string;
  readonly cursorAtMs?: number;
}

/**
 * One page of the app's wallets, newest first.
 *
 * @param cursor the `nextCursor` of the page before; `limit` is 1 to 100, 100 when left out.
 * @throws ApiError invalid_data for an unknown cursor, an invalid key, or both owner filters at once.
 */
export async function listWallets(
  context: ListContext,
  filter: WalletFilter,
  { cursor, limit = MAX_PAGE }: { cursor?: string | undefined; limit?: number | undefined },
): Promise<WalletPage> {
  const owners = await ownersOf(context, filter);
  if (owners?.length === 0) return { wallets: [], nextCursor: null };
  const { chainType, externalId, address, entityId } = filter;
  const input: PageInput = {
    appId: context.app.id,
    // One extra row shows whether another page follows.
    limit: limit + 1,
    ...(filter.includeArchived === true && { includeArchived: true }),
    ...(chainType !== undefined && { chainType }),
    ...(externalId !== undefined && { externalId }),
    ...(address !== undefined && { address: normalizeAddress(address) }),
    ...(entityId !== undefined && { entityId }),
    ...(cursor !== undefined && { cursor, cursorAtMs: await ageOf(context, cursor) }),
  };
  const rows = await selectPage(context, input, owners);
  const wallets = rows.slice(0, limit);
  return { wallets, nextCursor: rows.length > limit ? (wallets.at(-1)?.id ?? null) : null };
}

const preparedPages = new Map<string, PreparedQuery<PageInput, WalletRow>>();

/** A single owner's rows come in index order; several owners' rows have to be merged. */
async function selectPage(
  { em }: ListContext,
  input: PageInput,
  owners?: readonly string[],
): Promise<WalletRow[]> {
  const [ownerId] = owners ?? [];
  if (owners !== undefined && owners.length > 1) {
    return pageQuery(em.getKysely<Tables>(), input, input).where('owner_id', 'in', owners).execute();
  }
  const asked = ownerId === undefined ? input : { ...input, ownerId };
  const shape = Object.keys(asked).join();
  let page = preparedPages.get(shape);
  if (page === undefined) {
    page = prepareQuery((database, slots) => pageQuery(database, asked, slots));
    preparedPages.set(shape, page);
  }
  return (await page(em, asked)).rows;
}

/** `asked` selects the conditions, `values` supplies their parameters. */
function pageQuery(database: Kysely<Tables>, asked: PageInput, values: PageInput) {
  let query = database.selectFrom('wallets').select(walletColumns).where('app_id', '=', values.appId);
  const match = (name: keyof PageInput, column: keyof WalletRow) => {
    if (name in asked) query = query.where(column, '=', values[name] as string);
  };
  match('chainType', 'chain_type');
  match('externalId', 'external_id');
  match('address', 'address');
  match('entityId', 'entity_id');
  match('ownerId', 'owner_id');
  if (!('includeArchived' in asked)) query = query.where('archived_at_ms', 'is', null);
  if ('cursor' in asked) {
    // A row value comparison, which both databases answer from the index; the equivalent `or` would scan.
    query = query.where(sql<boolean>`(created_at_ms, id) < (${values.cursorAtMs}, ${values.cursor})`);
  }
  return query.orderBy('created_at_ms', 'desc').orderBy('id', 'desc').limit(values.limit);
}

const selectAge = prepareQuery<{ appId: string; id: string }, Pick<WalletRow, 'created_at_ms'>>(
  (database, { appId, id }) =>
    database.selectFrom('wallets').select('created_at_ms').where('id', '=', id).where('app_id', '=', appId),
);

async function ageOf({ app, em }: ListContext, cursor: string): Promise<number> {
  const {
    rows: [last],
  } = await selectAge(em, { appId: app.id, id: cursor });
  if (last === undefined) throw invalidQuery('cursor', 'expected the `next_cursor` of a previous page');
  return last.created_at_ms;
}

/** The key quorums that contain the filter's user or key; undefined without such a filter. */
async function ownersOf(
  { app, em }: ListContext,
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
