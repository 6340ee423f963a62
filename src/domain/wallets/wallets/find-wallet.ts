import type { Compilable, Kysely } from 'kysely';
import { notFound } from '../../../errors.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { prepareQuery } from '../../prepared-query.ts';
import type { Tables } from '../../tables.ts';
import { type StoredWalletKey, walletKeyColumns } from './find-wallet-key.ts';
import { type FoundWallet, type WalletRow, walletColumns } from './wallet-row.ts';

// HOT: the entity manager takes 13 (SQLite) and 6.4 (PostgreSQL) times the CPU per wallet read (bench `sqlite`,
// `postgres`).

type FindContext = Pick<OperationContext, 'app' | 'em'>;

/**
 * The digest is joined here: a separate query would cost more than the policy evaluation itself. Most wallets have no
 * automations, and asking for them separately would double the cost of reading a wallet.
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

/** A wallet that was read together with its key; a custodial one has none. */
export type WalletWithKey = FoundWallet &
  (StoredWalletKey | { readonly [Name in keyof StoredWalletKey]: null });

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

/** Prefix of an `external_id` used in place of a wallet id in paths. */
const EXTERNAL_PREFIX = 'ext_wal_';

/**
 * The app's wallet of this id, or of `ext_wal_` and its external id.
 *
 * @throws ApiError not_found for an absent wallet, another app's, and an archived one unless asked for.
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
  return unlessArchived(row, includeArchived);
}

function unlessArchived<Row extends WalletRow>(row: Row | undefined, includeArchived = false): Row {
  if (row === undefined || (row.archived_at_ms !== null && !includeArchived)) throw notFound('Wallet');
  return row;
}

/**
 * `findWallet` for a request that will probably sign with the wallet: its key is read in the same statement, which
 * saves PostgreSQL a round trip.
 *
 * @throws ApiError not_found, as `findWallet`.
 */
export async function findWalletWithKey(
  context: FindContext,
  walletId: string,
): Promise<FoundWallet | WalletWithKey> {
  if (walletId.startsWith(EXTERNAL_PREFIX)) return findWallet(context, walletId);
  const { rows } = await selectWithKeyById(context.em, { appId: context.app.id, id: walletId });
  return unlessArchived(rows[0]);
}

/**
 * The app's newest wallet with this address.
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
 * A wallet, locked for update until the transaction ends.
 *
 * @throws ApiError not_found, as `findWallet`.
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

/** The app's wallets among these ids, including archived ones. */
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
