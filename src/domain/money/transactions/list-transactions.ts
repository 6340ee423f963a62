import { normalizeAddress, readChainAddress } from '../../../engine/assets/addresses.ts';
import { decimalText, fromRaw } from '../../../engine/assets/decimal.ts';
import { assetNamed, type KnownAsset } from '../../../engine/assets/known-assets.ts';
import type { KnownChain } from '../../../engine/assets/known-chains.ts';
import { ApiError, invalidQuery } from '../../../errors.ts';
import type {
  TransactionDetail,
  WalletTransaction,
  WalletTransactionListResponse,
} from '../../../generated/schemas.ts';
import type { AnyChain, ChainTransfer } from '../../../ports/chains.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { findToken, readChain, requireKnownChain } from '../../access/chains/chains.ts';
import { prepareQuery } from '../../prepared-query.ts';
import type { Tables } from '../../tables.ts';
import { requireWalletChain } from '../../wallets/balances/balances.ts';
import { findWallet } from '../../wallets/wallets/find-wallet.ts';
import type { WalletRow } from '../../wallets/wallets/wallet.entity.ts';
import {
  readCursor,
  selectHashes,
  selectSent,
  type TransactionCursor,
  writeCursor,
} from './find-transaction.ts';
import { type TransactionRow, transactionColumns } from './transaction.entity.ts';

// KYSELY: see `TransactionRow` in `transaction.entity.ts`.

/** One entry of the list: one of our transactions, or a transfer from the chain's list. */
type Seen = { readonly atMs: number } & (
  | { readonly row: TransactionRow; readonly transfer?: undefined }
  | { readonly transfer: ChainTransfer; readonly row?: undefined }
);

/** Converts the entries of a page to wire form. */
async function transactionViews(
  context: Pick<OperationContext, 'app' | 'em'>,
  asked: Asked,
  page: readonly Seen[],
): Promise<WalletTransaction[]> {
  const parties = page.flatMap(({ row, transfer }) =>
    row === undefined ? [transfer.sender, transfer.recipient] : [row.sender, movedBy(row).recipient],
  );
  const users = await findUsers(context, parties);
  return page.map((seen) =>
    seen.row === undefined ? transferView(asked, seen.transfer, users) : rowView(asked, seen.row, users),
  );
}

type Users = ReadonlyMap<string, string>;

/**
 * Returns the asset, amount and recipient of one of our transactions.
 *
 * CHOICE: a transaction that is not a plain transfer of one asset shows the native asset that it sends, possibly zero.
 * Its recipient is the smart contract that it calls, or the wallet itself if it makes several calls or none.
 */
function movedBy(row: TransactionRow): Pick<ChainTransfer, 'sender' | 'recipient' | 'rawAmount'> {
  const { sender, moved_to: recipient, moved_amount: amount } = row;
  if (recipient !== null && amount !== null) return { sender, recipient, rawAmount: BigInt(amount) };
  const request = JSON.parse(row.transaction_request ?? '{}') as {
    readonly to?: string;
    readonly value?: string | number;
  };
  return { sender, recipient: request.to ?? sender, rawAmount: BigInt(request.value ?? 0) };
}

function rowView(asked: Asked, row: TransactionRow, users: Users): WalletTransaction {
  const { moved_token: token } = row;
  const asset = assetOf(asked, token === 'native' ? null : token);
  return {
    wallet_id: row.wallet_id,
    service_transaction_id: row.id,
    caip2: row.caip2,
    transaction_hash: row.transaction_hash,
    ...(row.user_operation_hash === null ? {} : { user_operation_hash: row.user_operation_hash }),
    status: row.status,
    created_at: row.created_at_ms,
    sponsored: row.is_sponsored === 1,
    details: detailOf(asked, asset, movedBy(row), users),
  };
}

function transferView(asked: Asked, transfer: ChainTransfer, users: Users): WalletTransaction {
  const asset = assetOf(asked, transfer.tokenAddress);
  return {
    wallet_id: asked.wallet.id,
    service_transaction_id: null,
    caip2: asked.chain.caip2,
    transaction_hash: transfer.hash,
    status: 'confirmed',
    created_at: transfer.blockTimestampSeconds * 1000,
    details: detailOf(asked, asset, transfer, users),
  };
}

/** Returns the requested asset with this token. The lists contain no other assets. */
function assetOf({ assets }: Asked, token: string | null): KnownAsset {
  const asset = assets.find(({ tokenAddress }) =>
    tokenAddress === null || token === null
      ? tokenAddress === token
      : normalizeAddress(tokenAddress) === normalizeAddress(token),
  );
  if (asset === undefined) throw new Error(`a transfer of ${token ?? 'the native asset'} was not requested`);
  return asset;
}

function detailOf(
  { wallet, chain }: Asked,
  { asset, decimals }: KnownAsset,
  moved: Pick<ChainTransfer, 'sender' | 'recipient' | 'rawAmount'>,
  users: Users,
): TransactionDetail {
  const sender = normalizeAddress(moved.sender);
  const recipient = normalizeAddress(moved.recipient);
  return {
    type: sender === wallet.address ? 'transfer_sent' : 'transfer_received',
    sender,
    sender_service_user_id: users.get(sender) ?? null,
    recipient,
    recipient_service_user_id: users.get(recipient) ?? null,
    chain: chain.name,
    asset,
    raw_value: String(moved.rawAmount),
    raw_value_decimals: decimals,
    display_values: { [asset]: decimalText(fromRaw(moved.rawAmount, decimals)) },
  };
}

/**
 * Finds the app's users who own the wallets at these addresses.
 *
 * CHOICE: a wallet belongs to the user to whom it is assigned, otherwise to the first user in its owning quorum.
 */
async function findUsers(
  { app, em }: Pick<OperationContext, 'app' | 'em'>,
  addresses: readonly string[],
): Promise<Users> {
  const wanted = [...new Set(addresses.map(normalizeAddress))];
  if (wanted.length === 0) return new Map();
  const rows = await em
    .getKysely<Tables>()
    .selectFrom('wallets')
    .leftJoin('key_quorum_members as owner', (join) =>
      join.onRef('owner.key_quorum_id', '=', 'wallets.owner_id').on('owner.kind', '=', 'user'),
    )
    .select(['wallets.address', 'wallets.entity_type', 'wallets.entity_id', 'owner.member'])
    .where('wallets.app_id', '=', app.id)
    .where('wallets.address', 'in', wanted)
    .orderBy('wallets.id')
    .orderBy('owner.position')
    .execute();
  const users = new Map<string, string>();
  for (const { address, entity_type: type, entity_id: entity, member } of rows) {
    const user = type === 'user' ? entity : member;
    if (user !== null && !users.has(address)) users.set(address, user);
  }
  return users;
}

interface TransactionQuery {
  readonly chain: string;
  readonly asset?: string | readonly string[] | undefined;
  /** Addresses of token contracts or mints on the chain. */
  readonly token?: string | readonly string[] | undefined;
  readonly tx_hash?: string | undefined;
  readonly cursor?: string | undefined;
  readonly limit?: number | undefined;
  readonly include_archived?: boolean | undefined;
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

/** Lists the app's transactions that were sent with a reference, newest first. */
export async function listTransactionsByReference(
  { app, em }: Pick<OperationContext, 'app' | 'em'>,
  referenceId: string,
): Promise<readonly TransactionRow[]> {
  // A PostgreSQL text cannot contain U+0000, so no stored reference matches.
  if (referenceId.includes('\0')) return [];
  return (await selectByReference(em, { appId: app.id, referenceId })).rows;
}

type ListContext = Pick<OperationContext, 'app' | 'em' | 'chains'>;

const MAX_PAGE = 100;

/**
 * Lists one page of a wallet's transactions on one chain, newest first: those that this server sent and, if the chain
 * lists transfers, the others.
 *
 * CHOICE: one of our transactions that is not a plain transfer of one asset is listed under the native asset, in which
 * its fee is paid. Transfers known only from the chain are `confirmed`.
 *
 * @throws ApiError not_found; invalid_data; not_supported; unavailable.
 */
export async function listWalletTransactions(
  context: ListContext,
  walletId: string,
  query: TransactionQuery,
): Promise<WalletTransactionListResponse> {
  const wallet = await findWallet(context, walletId, { includeArchived: query.include_archived });
  const known = requireWalletChain(wallet, query.chain);
  const assets = await askedAssets(context, known, query);
  const chain = requireKnownChain(context, known);
  const limit = query.limit ?? MAX_PAGE;
  const cursor = readCursor(query.cursor);
  const asked: Asked = { wallet, chain: known, assets, hash: normalHash(query.tx_hash) };
  // One row more than requested shows whether there is another page.
  const sent = await selectSent(context, { ...asked, after: cursor.row, limit: limit + 1 });
  const seen = await readSeen(context, {
    ...asked,
    port: chain,
    after: cursor.position,
    limit: limit + 1,
    backToMs: sent[limit]?.created_at_ms ?? 0,
  });
  const merged = merge(sent, seen.transfers);
  const page = merged.slice(0, limit);
  const last = merged.length > limit ? endOf(page, { cursor, seen }) : undefined;
  return {
    transactions: await transactionViews(context, asked, page),
    next_cursor: last === undefined ? null : writeCursor(last),
  };
}

/** Normalizes a hash: EVM hashes become lower case, because they are case-insensitive. */
function normalHash(hash: string | undefined): string | undefined {
  return hash?.startsWith('0x') ? hash.toLowerCase() : hash;
}

/** The filters of a page. */
export interface Asked {
  readonly wallet: WalletRow;
  readonly chain: KnownChain;
  readonly assets: readonly KnownAsset[];
  readonly hash: string | undefined;
}

async function askedAssets(
  context: Pick<OperationContext, 'chains'>,
  chain: KnownChain,
  { asset, token }: TransactionQuery,
): Promise<readonly KnownAsset[]> {
  if ((asset === undefined) === (token === undefined)) {
    throw invalidQuery('asset', 'expected either `asset` or `token`');
  }
  if (token !== undefined) {
    return Promise.all(listOf(token).map((text) => tokenAsked(context, chain, text)));
  }
  return listOf(asset ?? []).map((name) => {
    const known = assetNamed(chain, name);
    if (known === undefined)
      throw new ApiError('not_supported', `asset: no \`${name}\` on \`${chain.name}\``);
    return known;
  });
}

async function tokenAsked(
  context: Pick<OperationContext, 'chains'>,
  chain: KnownChain,
  text: string,
): Promise<KnownAsset> {
  const tokenAddress = readChainAddress(chain.chainType, text);
  if (tokenAddress === undefined) {
    throw invalidQuery('token', `expected a contract or mint address on \`${chain.name}\`, got \`${text}\``);
  }
  return findToken(context, chain, tokenAddress);
}

/** Returns the distinct values in order of first appearance. */
function listOf(value: string | readonly string[]): string[] {
  return [...new Set(typeof value === 'string' ? [value] : value)];
}

interface SeenTransfers {
  readonly transfers: readonly ChainTransfer[];
  /**
   * The position in the chain's list down to which it was read, including everything newer. Undefined if nothing was
   * read.
   */
  readonly readTo: string | undefined;
}

/**
 * Reads the transfers of the wallet that we did not send, newest first, as far back as the page can need them.
 *
 * @throws ApiError unavailable
 */
async function readSeen(
  context: ListContext,
  {
    wallet,
    chain,
    assets,
    hash,
    port,
    after,
    limit,
    backToMs,
  }: Asked & {
    readonly port: AnyChain;
    readonly after: string | undefined;
    readonly limit: number;
    /** The time of the oldest entry that can be on this page. Older transfers need not be read. */
    readonly backToMs: number;
  },
): Promise<SeenTransfers> {
  const transfers: ChainTransfer[] = [];
  let readTo = after;
  while (port.transfersOf !== undefined) {
    const answer = await readChain(
      port.transfersOf({
        address: wallet.address,
        tokenAddresses: assets.map(({ tokenAddress }) => tokenAddress),
        hash,
        beforePosition: readTo,
        limit: MAX_PAGE,
      }),
      chain,
    );
    const own = await selectHashes(
      context,
      wallet,
      answer.map((transfer) => transfer.hash),
    );
    transfers.push(...answer.filter((transfer) => !own.has(transfer.hash)));
    const oldest = answer.at(-1);
    if (oldest !== undefined) readTo = oldest.position;
    const isEnough = transfers.length >= limit || (oldest !== undefined && atMs(oldest) < backToMs);
    if (answer.length < MAX_PAGE || isEnough) break;
  }
  return { transfers, readTo };
}

function atMs({ blockTimestampSeconds }: ChainTransfer): number {
  return blockTimestampSeconds * 1000;
}

/** Merges both lists, newest first. Of entries with equal times, our own transactions come first. */
function merge(sent: readonly TransactionRow[], transfers: readonly ChainTransfer[]): readonly Seen[] {
  const own = sent.map((row): Seen => ({ row, atMs: row.created_at_ms }));
  const others = transfers.map((transfer): Seen => ({ transfer, atMs: atMs(transfer) }));
  // Each list keeps its own order, because its cursor depends on it.
  const merged: Seen[] = [];
  while (own.length > 0 || others.length > 0) {
    const [first, other] = [own[0], others[0]];
    const isOwn = first !== undefined && (other === undefined || first.atMs >= other.atMs);
    merged.push((isOwn ? own.shift() : others.shift()) as Seen);
  }
  return merged;
}

function endOf(
  page: readonly Seen[],
  { cursor, seen }: { cursor: TransactionCursor; seen: SeenTransfers },
): TransactionCursor {
  const row = page.findLast((entry) => entry.row !== undefined)?.row;
  const shown = page.filter((entry) => entry.transfer !== undefined);
  // If all transfers are shown, the next page continues where this page stopped reading, so that it does not read our
  // own transfers again.
  const isAllShown = shown.length === seen.transfers.length;
  return {
    row: row === undefined ? cursor.row : { createdAtMs: row.created_at_ms, id: row.id },
    position: isAllShown ? seen.readTo : (shown.at(-1)?.transfer?.position ?? cursor.position),
  };
}
