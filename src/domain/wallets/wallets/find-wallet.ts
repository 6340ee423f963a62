import type { Compilable, Kysely } from 'kysely';
import { normalizeAddress } from '../../../engine/assets/addresses.ts';
import { InvalidPublicKeyError, parseP256PublicKey } from '../../../engine/crypto/p256.ts';
import { invalidQuery, notFound } from '../../../errors.ts';
import type {
  CustodialWalletChain,
  Wallet,
  WalletChainType,
  WalletEntityType,
} from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { olderThan, pageOf } from '../../../storage/find-page.ts';
import { type PreparedQuery, prepareQuery } from '../../prepared-query.ts';
import type { Tables } from '../../tables.ts';
import { type FoundWallet, type WalletRow, walletColumns } from './wallet.entity.ts';
import { type StoredWalletKey, walletKeyColumns } from './wallet-keys.ts';

// HOT: the entity manager takes 13 (SQLite) and 6.4 (PostgreSQL) times the CPU per wallet read (bench `sqlite`,
// `postgres`).

type FindContext = Pick<OperationContext, 'app' | 'em'>;

/**
 * Selects wallets with the digest of their policy, because a separate query for it would cost more than the policy
 * evaluation itself. The same holds for automations: most wallets have none, and a separate query would double the cost
 * of reading a wallet.
 */
function selectFound(database: Kysely<Tables>) {
  return database
    .selectFrom('wallets')
    .leftJoin('policies', 'policies.id', 'wallets.policy_id')
    .select(walletColumns.map((column) => `wallets.${column}` as const))
    .select('policies.rules_digest as policy_rules_digest')
    .select(({ exists, selectFrom }) =>
      exists(
        selectFrom('wallet_automation_attachments as attachments')
          .select('attachments.id')
          .whereRef('attachments.wallet_id', '=', 'wallets.id'),
      ).as('has_automations'),
    );
}

const selectById = prepareQuery<{ appId: string; id: string }, FoundWallet>((database, { appId, id }) =>
  selectFound(database).where('wallets.app_id', '=', appId).where('wallets.id', '=', id),
);

const selectByExternalId = prepareQuery<{ appId: string; externalId: string }, FoundWallet>(
  (database, { appId, externalId }) =>
    selectFound(database).where('wallets.app_id', '=', appId).where('wallets.external_id', '=', externalId),
);

/** A wallet that was read together with its key. A custodial wallet has no key. */
type WalletWithKey = FoundWallet & (StoredWalletKey | { readonly [Name in keyof StoredWalletKey]: null });

function selectFoundWithKey(database: Kysely<Tables>) {
  return selectFound(database)
    .leftJoin('wallet_keys', 'wallet_keys.wallet_id', 'wallets.id')
    .select(walletKeyColumns);
}

const selectWithKeyById = prepareQuery<{ appId: string; id: string }, WalletWithKey>(
  (database, { appId, id }) =>
    selectFoundWithKey(database)
      .where('wallets.app_id', '=', appId)
      .where('wallets.id', '=', id) as Compilable<WalletWithKey>,
);

/** The prefix that marks an external id in a path, in place of the wallet's id. */
export const EXTERNAL_PREFIX = 'ext_wal_';

/**
 * Finds the app's wallet with this id, or with the external id after `ext_wal_`.
 *
 * @throws ApiError not_found for a wallet that does not exist or belongs to another app, and for an archived wallet
 * unless archived wallets are included.
 */
export async function findWallet(
  { app, em }: FindContext,
  walletId: string,
  { includeArchived = false }: { includeArchived?: boolean | undefined } = {},
): Promise<FoundWallet> {
  const {
    rows: [row],
  } = await (walletId.startsWith(EXTERNAL_PREFIX)
    ? selectByExternalId(em, { appId: app.id, externalId: walletId.slice(EXTERNAL_PREFIX.length) })
    : selectById(em, { appId: app.id, id: walletId }));
  return requireUnarchived(row, includeArchived);
}

function requireUnarchived<Row extends WalletRow>(row: Row | undefined, includeArchived = false): Row {
  if (row === undefined || (row.archived_at_ms !== null && !includeArchived)) throw notFound('Wallet');
  return row;
}

/**
 * Does the same as `findWallet`, for a request that will probably sign with the wallet. By the wallet's own id, it
 * reads the key with the same statement, which saves a round trip on PostgreSQL. By an external id, it reads no key.
 *
 * @throws ApiError what `findWallet` throws.
 */
export async function findWalletWithKey(
  context: FindContext,
  walletId: string,
): Promise<FoundWallet | WalletWithKey> {
  if (walletId.startsWith(EXTERNAL_PREFIX)) return findWallet(context, walletId);
  const { rows } = await selectWithKeyById(context.em, { appId: context.app.id, id: walletId });
  return requireUnarchived(rows[0]);
}

/**
 * Finds the app's newest wallet with this address. Archived wallets are left out unless they are included.
 *
 * @throws ApiError not_found
 */
export async function findWalletByAddress(
  { app, em }: FindContext,
  address: string,
  { includeArchived = false }: { includeArchived?: boolean | undefined } = {},
): Promise<WalletRow> {
  const query = em
    .getKysely<Tables>()
    .selectFrom('wallets')
    .select(walletColumns)
    .where('app_id', '=', app.id)
    .where('address', '=', address)
    .orderBy('created_at_ms', 'desc')
    .orderBy('id', 'desc')
    .limit(1);
  const row = await (includeArchived ? query : query.where('archived_at_ms', 'is', null)).executeTakeFirst();
  if (row === undefined) throw notFound('Wallet');
  return row;
}

/**
 * Finds a wallet and locks it until the transaction ends.
 *
 * @throws ApiError what `findWallet` throws.
 */
export async function findWalletForUpdate(context: FindContext, walletId: string): Promise<FoundWallet> {
  const { id } = await findWallet(context, walletId);
  await context.em
    .getKysely<Tables>()
    .selectFrom('wallets')
    .select('id')
    .where('id', '=', id)
    .forUpdate()
    .execute();
  return findWallet(context, id);
}

/** Lists the app's wallets with these ids, including archived ones. */
export async function listWalletsOfIds(
  { app, em }: FindContext,
  ids: readonly string[],
): Promise<WalletRow[]> {
  if (ids.length === 0) return [];
  return em
    .getKysely<Tables>()
    .selectFrom('wallets')
    .select(walletColumns)
    .where('id', 'in', ids)
    .where('app_id', '=', app.id)
    .execute();
}

// HOT: the entity manager takes 14 (SQLite) and 16 (PostgreSQL) times the CPU per page of 50 (bench `sqlite`,
// `postgres`).

const MAX_PAGE = 100;

type ListContext = Pick<OperationContext, 'app' | 'em'>;

export interface WalletFilter {
  chainType?: string | undefined;
  /** Only wallets whose owner is a key quorum with this user as a member. Excludes `authorizationKey`. */
  userId?: string | undefined;
  /** Only wallets whose owner is a key quorum with this P-256 public key as a member. The key is base64 DER or PEM. */
  authorizationKey?: string | undefined;
  externalId?: string | undefined;
  address?: string | undefined;
  entityId?: string | undefined;
  includeArchived?: boolean | undefined;
}

interface WalletPage {
  wallets: WalletRow[];
  nextCursor: string | null;
}

/** The filters of a page. Filters that were not requested are absent. */
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
 * Lists one page of the app's wallets, newest first.
 *
 * @param cursor the `nextCursor` of the previous page.
 * @param limit 1 to 100, by default 100.
 * @throws ApiError invalid_data for an unknown cursor, an invalid key, or both owner filters together.
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
    limit: limit + 1,
    ...(filter.includeArchived === true && { includeArchived: true }),
    ...(chainType !== undefined && { chainType }),
    ...(externalId !== undefined && { externalId }),
    ...(address !== undefined && { address: normalizeAddress(address) }),
    ...(entityId !== undefined && { entityId }),
    ...(cursor !== undefined && { cursor, cursorAtMs: await ageOf(context, cursor) }),
  };
  const { page, nextCursor } = pageOf(await selectPage(context, input, owners), limit);
  return { wallets: page, nextCursor };
}

const preparedPages = new Map<string, PreparedQuery<PageInput, WalletRow>>();

/**
 * Reads a page of wallets. The rows of a single owner come in index order, so that statement is prepared. The rows of
 * several owners have to be merged.
 */
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

/**
 * Builds the query for a page of wallets.
 *
 * @param asked determines the conditions.
 * @param values supplies their parameters.
 */
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
  if ('cursor' in asked) query = query.where(olderThan(values.cursorAtMs!, values.cursor!));
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

/**
 * Returns the ids of the key quorums that contain the user or key of the filter; undefined without such a filter.
 *
 * @throws ApiError invalid_data
 */
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

/** Converts a wallet to wire form. Unset fields are left out, except where the API uses null. */
export function walletView(row: WalletRow): Wallet {
  return {
    id: row.id,
    address: row.address,
    chain_type: row.chain_type as WalletChainType,
    ...(row.public_key === null ? {} : { public_key: row.public_key }),
    ...(row.display_name === null ? {} : { display_name: row.display_name }),
    ...(row.external_id === null ? {} : { external_id: row.external_id }),
    owner_id: row.owner_id,
    policy_ids: row.policy_id === null ? [] : [row.policy_id],
    additional_signers: JSON.parse(row.additional_signers),
    entity: row.entity_id === null ? null : { id: row.entity_id, type: row.entity_type as WalletEntityType },
    ...custodyView(row),
    created_at: row.created_at_ms,
    imported_at: row.imported_at_ms,
    exported_at: row.exported_at_ms,
    archived_at: row.archived_at_ms,
  };
}

function custodyView(row: WalletRow): Pick<Wallet, 'custody' | 'chain'> {
  if (row.custody_provider === null || row.custody_provider_user_id === null) return {};
  return {
    custody: { provider: row.custody_provider, provider_user_id: row.custody_provider_user_id },
    ...(row.custody_chain === null ? {} : { chain: row.custody_chain as CustodialWalletChain }),
  };
}
