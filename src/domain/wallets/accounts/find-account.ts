import { invalidQuery, notFound } from '../../../errors.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { containsText } from '../../../storage/contains-text.ts';
import { findPage } from '../../../storage/find-page.ts';
import { lockForUpdate } from '../../../storage/locks.ts';
import { listWalletsOfIds } from '../wallets/find-wallet.ts';
import type { WalletRow } from '../wallets/wallet-row.ts';
import { AccountEntity, type StoredAccount } from './account.entity.ts';
import { AccountWalletEntity } from './account-wallet.entity.ts';

export type AccountContext = Pick<OperationContext, 'app' | 'em'>;

/** An account with its wallets, in the order they were added. */
export interface Account {
  readonly account: StoredAccount;
  readonly wallets: readonly WalletRow[];
}

const MAX_PAGE = 100;

/**
 * An account of the app with its wallets, including archived ones, whose balance still counts.
 *
 * @throws ApiError not_found
 */
export async function findAccount(context: AccountContext, id: string): Promise<Account> {
  const account = await getAccount(context, id);
  if (account === null) throw notFound('Account');
  return withWallets(context, account);
}

/**
 * An account that is about to change, locked until the transaction ends.
 *
 * @throws ApiError not_found
 */
export async function findAccountForUpdate(context: AccountContext, id: string): Promise<Account> {
  const account = await getAccount(context, id, lockForUpdate);
  if (account === null) throw notFound('Account');
  return withWallets(context, account);
}

/**
 * One page of the app's accounts, newest first.
 *
 * CHOICE: `search` matches anywhere in the name, ignoring case.
 *
 * @param cursor the `nextCursor` of the page before; `limit` is 1 to 100, 100 when left out.
 * @throws ApiError invalid_data for a cursor of no account.
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

/** Null also for text that cannot be an account id. */
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
