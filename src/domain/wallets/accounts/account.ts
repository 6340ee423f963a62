import { add, type Decimal, decimalText, fromRaw, ZERO } from '../../../engine/assets/decimal.ts';
import { assetsOf, type KnownAsset } from '../../../engine/assets/known-assets.ts';
import { type KnownChain, knownChains } from '../../../engine/assets/known-chains.ts';
import { invalidField, invalidQuery, notFound } from '../../../errors.ts';
import type {
  AccountBalanceResponse,
  AccountResponse,
  AccountWallet,
  AccountWalletConfigurationItem,
  BalanceAsset,
  CreateAccountRequest,
  FirstClassChainType,
  UpdateAccountRequest,
} from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { findPage } from '../../../storage/find-page.ts';
import { lockForUpdate } from '../../../storage/locks.ts';
import { containsText } from '../../../storage/sql-functions.ts';
import {
  askBalances,
  type BalanceQuestion,
  type Holding,
  type PriceOf,
  pricesOf,
  priceText,
  symbolOf,
  worthOf,
  worthText,
} from '../balances/balances.ts';
import { createCustodialWallet } from '../custodial-wallets/custodial-wallet.ts';
import { createWallet, createWalletKey, type KeyOfWallet } from '../wallets/create-wallet.ts';
import { listWalletsOfIds } from '../wallets/find-wallet.ts';
import type { WalletRow } from '../wallets/wallet.entity.ts';
import { AccountEntity, AccountWalletEntity, type StoredAccount } from './account.entity.ts';

type AccountContext = Pick<OperationContext, 'app' | 'em'>;

/** An account with its wallets, in the order in which they were added. */
interface Account {
  readonly account: StoredAccount;
  readonly wallets: readonly WalletRow[];
}

const MAX_PAGE = 100;

/**
 * Finds an account of the app with its wallets, including archived ones, whose balance still counts.
 *
 * @throws ApiError not_found
 */
export async function findAccount(context: AccountContext, id: string): Promise<Account> {
  const account = await getAccount(context, id);
  if (account === null) throw notFound('Account');
  return withWallets(context, account);
}

/**
 * Finds an account that is about to change, and locks it until the transaction ends.
 *
 * @throws ApiError not_found
 */
async function findAccountForUpdate(context: AccountContext, id: string): Promise<Account> {
  const account = await getAccount(context, id, lockForUpdate);
  if (account === null) throw notFound('Account');
  return withWallets(context, account);
}

/**
 * Lists one page of the app's accounts, newest first.
 *
 * CHOICE: `search` matches anywhere in the name and ignores case.
 *
 * @param options `cursor` is the `nextCursor` of the previous page; `limit` is 1 to 100, by default 100.
 * @throws ApiError invalid_data for a cursor that is not an account of the app.
 */
export async function listAccounts(
  context: AccountContext,
  options: { cursor?: string | undefined; limit?: number | undefined; search?: string | undefined },
): Promise<{ accounts: Account[]; nextCursor: string | null }> {
  const { cursor, search, limit = MAX_PAGE } = options;
  const after = cursor === undefined ? undefined : await getAccount(context, cursor);
  if (after === null) throw invalidQuery('cursor', 'expected the `next_cursor` of a previous page');
  const { page, nextCursor } = await findPage(
    context.em,
    AccountEntity,
    { appId: context.app.id, ...(search === undefined ? {} : containsText('search_name', search)) },
    { after, limit },
  );
  const wallets = await walletsOf(
    context,
    page.map(({ id }) => id),
  );
  return {
    accounts: page.map((account) => ({ account, wallets: wallets.get(account.id) ?? [] })),
    nextCursor,
  };
}

/** Returns the account; null for an unknown or malformed id. */
async function getAccount(
  { app, em }: AccountContext,
  id: string,
  options?: typeof lockForUpdate,
): Promise<StoredAccount | null> {
  if (!/^[a-z0-9]{1,64}$/.test(id)) return null;
  return em.findOne(AccountEntity, { id, appId: app.id }, options);
}

async function withWallets(context: AccountContext, account: StoredAccount): Promise<Account> {
  return { account, wallets: (await walletsOf(context, [account.id])).get(account.id) ?? [] };
}

async function walletsOf(
  context: AccountContext,
  accountIds: string[],
): Promise<ReadonlyMap<string, readonly WalletRow[]>> {
  if (accountIds.length === 0) return new Map();
  const entries = await context.em.find(
    AccountWalletEntity,
    { accountId: { $in: accountIds } },
    { orderBy: { accountId: 'asc', position: 'asc' } },
  );
  const ids = [...new Set(entries.map(({ walletId }) => walletId))];
  const wallets = new Map((await listWalletsOfIds(context, ids)).map((wallet) => [wallet.id, wallet]));
  const byAccount = Map.groupBy(entries, ({ accountId }) => accountId);
  return new Map(
    [...byAccount].map(([id, members]) => [id, members.map(({ walletId }) => wallets.get(walletId)!)]),
  );
}

/**
 * Returns the combined balance of an account's wallets in US dollars, on main networks or on test networks.
 *
 * CHOICE: it covers the named assets of every configured chain. Assets without a known price count as worth 0. Assets
 * with a zero balance are left out.
 *
 * @throws ApiError not_found; unavailable when a chain cannot be reached.
 */
export async function getAccountBalance(
  context: Pick<OperationContext, 'app' | 'em' | 'chains' | 'prices'>,
  accountId: string,
  { isTestnet }: { isTestnet: boolean },
): Promise<AccountBalanceResponse> {
  const { wallets } = await findAccount(context, accountId);
  const questions = knownChains({ isTestnet })
    .filter(({ caip2 }) => context.chains.find(caip2) !== undefined)
    .flatMap((chain) => questionsOn(chain, wallets));
  const held = (await askBalances(context, questions)).filter(({ rawAmount }) => rawAmount > 0n);
  const assets = held.map(({ asset }) => asset);
  const priceOf = await pricesOf(context, assets, 'usd');
  const worths = held.map((holding) => worthOf(amountOf(holding), priceOf(holding.asset) ?? ZERO));
  return {
    total: { value: worthText(worths.reduce(add, ZERO)), currency: 'usd' },
    assets: [...Map.groupBy(held, ({ asset }) => asset.asset).values()].map((same) => sum(same, priceOf)),
    assets_by_chain: [...Map.groupBy(held, ({ asset }) => asset).entries()].map(([{ chain }, same]) => ({
      ...sum(same, priceOf),
      chain_id: chain.caip2,
    })),
  };
}

/**
 * Returns the balance queries for a chain. Each address occurs once, because two wallets with the same imported key
 * share one balance.
 */
function questionsOn(chain: KnownChain, wallets: readonly WalletRow[]): BalanceQuestion[] {
  const addresses = new Set(
    wallets
      .filter(({ chain_type }) => chain_type === chain.chainType)
      // A custodian credits deposits only on the chain of the custodial wallet.
      .filter(({ custody_chain: custodyChain }) => custodyChain === null || custodyChain === chain.name)
      .map(({ address }) => address),
  );
  return [...addresses].map((address) => ({ chain, address, assets: assetsOf(chain) }));
}

function amountOf({ asset, rawAmount }: Holding): Decimal {
  return fromRaw(rawAmount, asset.decimals);
}

function sum(holdings: readonly Holding[], priceOf: PriceOf): BalanceAsset {
  // `Map.groupBy` makes no empty group.
  const { asset } = holdings[0] as { asset: KnownAsset };
  return {
    symbol: symbolOf(asset.asset),
    amount: decimalText(holdings.map(amountOf).reduce(add, ZERO)),
    price: { value: priceText(priceOf(asset) ?? ZERO), currency: 'usd' },
  };
}

/** Converts an account to wire form. */
export function accountView({ account, wallets }: Account): AccountResponse {
  return {
    id: account.id,
    display_name: account.displayName,
    wallets: wallets.map((row) => ({
      id: row.id,
      // Accounts contain only wallets of these chain types.
      chain_type: row.chain_type as FirstClassChainType,
      address: row.address,
      ...custodyOf(row),
    })),
  };
}

function custodyOf(row: WalletRow): Pick<AccountWallet, 'custody'> {
  const { custody_provider: provider, custody_provider_user_id: userId } = row;
  return provider === null || userId === null ? {} : { custody: { provider, provider_user_id: userId } };
}

const MAX_WALLETS = 5;
const CHAIN_TYPES = new Set(['ethereum', 'solana']);

/**
 * Creates an account from existing wallets, or from new wallets without owner and policy.
 *
 * @throws ApiError invalid_data when a wallet does not exist, is archived or has an extended chain type; what
 * `createCustodialWallet` throws for a wallet with custody.
 */
export async function createAccount(
  context: OperationContext,
  input: CreateAccountRequest,
): Promise<Account> {
  const keys = drawKeys(context, input);
  const wallets = await walletsFor(context, input, await keys);
  const account = context.em.create(AccountEntity, {
    id: context.ids.cuid(),
    appId: context.app.id,
    ...namesOf(input.display_name ?? null),
    createdAtMs: context.nowMs,
  });
  addWallets(context, account, wallets, 0);
  await context.em.flush();
  return { account, wallets };
}

/**
 * Renames an account, adds wallets to it, or both. Wallets cannot be removed.
 *
 * @throws ApiError not_found; invalid_data as for a new account, for a wallet that is already in the account, and for
 * more than five wallets.
 */
export async function updateAccount(
  context: OperationContext,
  id: string,
  input: UpdateAccountRequest,
): Promise<Account> {
  const keys = drawKeys(context, input);
  const { account, wallets } = await findAccountForUpdate(context, id);
  const { field, count } = askedWallets(input);
  if (wallets.length + count > MAX_WALLETS) {
    throw invalidField(
      `/${field}`,
      `expected at most ${MAX_WALLETS} wallets in an account, which already has ${wallets.length}`,
    );
  }
  for (const [index, walletId] of ('wallet_ids' in input ? input.wallet_ids : []).entries()) {
    if (wallets.some((wallet) => wallet.id === walletId)) {
      throw invalidField(`/wallet_ids/${index}`, `the wallet \`${walletId}\` is already in the account`);
    }
  }
  const added = await walletsFor(context, input, await keys);
  addWallets(context, account, added, wallets.length);
  if (input.display_name !== undefined) Object.assign(account, namesOf(input.display_name));
  await context.em.flush();
  return { account, wallets: [...wallets, ...added] };
}

function askedWallets(input: UpdateAccountRequest): { field: string; count: number } {
  if ('wallet_ids' in input) return { field: 'wallet_ids', count: input.wallet_ids.length };
  return { field: 'wallets_configuration', count: configurationOf(input).length };
}

function configurationOf(
  input: CreateAccountRequest | UpdateAccountRequest,
): readonly AccountWalletConfigurationItem[] {
  return 'wallets_configuration' in input ? (input.wallets_configuration ?? []) : [];
}

function namesOf(name: string | null): Pick<StoredAccount, 'displayName' | 'searchName'> {
  return { displayName: name, searchName: name?.toLowerCase() ?? null };
}

/**
 * Creates the ids and keys of new wallets, except custodial ones, before the first statement. That statement begins the
 * transaction, and on SQLite all other requests wait for it to end.
 */
async function drawKeys(
  context: OperationContext,
  input: CreateAccountRequest | UpdateAccountRequest,
): Promise<(KeyOfWallet | undefined)[]> {
  const configuration = configurationOf(input);
  return Promise.all(
    configuration.map(({ chain_type, custody }) =>
      custody === undefined ? createWalletKey(context, chain_type) : undefined,
    ),
  );
}

async function walletsFor(
  context: OperationContext,
  input: CreateAccountRequest | UpdateAccountRequest,
  keys: readonly (KeyOfWallet | undefined)[],
): Promise<WalletRow[]> {
  if ('wallet_ids' in input) return requireWallets(context, input.wallet_ids);
  const made: WalletRow[] = [];
  for (const [index, { chain_type, custody }] of configurationOf(input).entries()) {
    const at = `/wallets_configuration/${index}/custody`;
    made.push(
      custody === undefined
        ? await createWallet(context, { chain_type }, Promise.resolve(keys[index] as KeyOfWallet))
        : await createCustodialWallet(context, { ...custody, chain_type }, at),
    );
  }
  return made;
}

/**
 * Finds the wallets with these ids, and returns them in the order of the ids.
 *
 * @throws ApiError invalid_data for a wallet that is unknown, archived or of another chain type.
 */
async function requireWallets(context: OperationContext, ids: readonly string[]): Promise<WalletRow[]> {
  const rows = await listWalletsOfIds(context, ids);
  const byId = new Map(rows.filter((row) => row.archived_at_ms === null).map((row) => [row.id, row]));
  return ids.map((id, index) => {
    const row = byId.get(id);
    if (row === undefined) throw invalidField(`/wallet_ids/${index}`, `no wallet \`${id}\``);
    if (CHAIN_TYPES.has(row.chain_type)) return row;
    throw invalidField(
      `/wallet_ids/${index}`,
      `expected a wallet on ethereum or solana, got ${row.chain_type}`,
    );
  });
}

function addWallets(
  { em }: OperationContext,
  { id: accountId }: StoredAccount,
  wallets: readonly WalletRow[],
  from: number,
): void {
  for (const [index, { id: walletId }] of wallets.entries()) {
    em.create(AccountWalletEntity, { accountId, walletId, position: from + index });
  }
}
