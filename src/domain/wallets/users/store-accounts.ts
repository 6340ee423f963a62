import { ApiError, invalidField } from '../../../errors.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { lockNames } from '../../../storage/locks.ts';
import {
  type LinkedAccountRow,
  type StoredAccount,
  type UserRow,
  UserSearchTermEntity,
} from '../../access/user-records/user.entity.ts';
import { lookupKey } from '../../base/lookup-keys/lookup-key.ts';
import type { Tables } from '../../tables.ts';
import type { WalletRow } from '../wallets/wallet.entity.ts';
import { type LinkedAccountRecord, REPEATABLE_TYPES } from './linked-account-kinds.ts';
import { searchTermsOf } from './list-users.ts';

// KYSELY: the insertion skips accounts that other users have, and reports how many rows it has written.

/** CHOICE: the maximum number of accounts of one user. Every response and event with the user contains all of them. */
const MAX_ACCOUNTS = 500;

/** An account to link. `wallet` is set if the account is an embedded wallet of this service. */
export interface NewAccount extends LinkedAccountRecord {
  readonly wallet?: WalletRow;
}

export type UserIdentity = Pick<UserRow, 'id' | 'created_at_ms'>;

/**
 * Links accounts to a user and indexes them for search. All of them count as verified now.
 *
 * @param linked the accounts that the user already has; the caller has locked or just created the user.
 * @throws ApiError linked_to_another_user when another user of the app has one of the accounts; of concurrent requests
 * for one account exactly one succeeds. max_accounts_reached for more than 500 accounts.
 */
export async function storeAccounts(
  context: OperationContext,
  user: UserIdentity,
  {
    linked,
    accounts,
    usableAtMs = null,
  }: {
    linked: readonly StoredAccount[];
    accounts: readonly NewAccount[];
    usableAtMs?: number | null;
  },
): Promise<StoredAccount[]> {
  if (accounts.length === 0) return [];
  if (linked.length + accounts.length > MAX_ACCOUNTS) {
    throw new ApiError('max_accounts_reached', `a user has at most ${MAX_ACCOUNTS} linked accounts`);
  }
  const from = 1 + Math.max(-1, ...linked.map((account) => account.position));
  const rows = accounts.map((account, index) =>
    toRow(context, user, { account, position: from + index, usableAtMs }),
  );
  // INVARIANT: the unique index on app, type and subject decides between concurrent requests. The second one waits
  // for the transaction of the first and then inserts nothing.
  const { numInsertedOrUpdatedRows } = await context.em
    .getKysely<Tables>()
    .insertInto('linked_accounts')
    .values(rows)
    .onConflict((conflict) => conflict.columns(['app_id', 'type', 'subject']).doNothing())
    .executeTakeFirstOrThrow();
  if (numInsertedOrUpdatedRows !== BigInt(rows.length)) throw linkedToAnotherUser();
  const stored = rows.map((row, index) => ({ ...row, wallet: accounts[index]?.wallet ?? null }));
  await storeSearchTerms(
    context,
    user,
    stored.map((row, index) => ({ accountId: row.id, account: accounts[index] as NewAccount })),
  );
  return stored;
}

/**
 * Locks the keys of accounts until the transaction ends. Call it before linking several accounts, to prevent deadlocks
 * between requests that link some of the same accounts.
 */
export async function queueForAccounts(
  { app, em }: Pick<OperationContext, 'app' | 'em'>,
  accounts: readonly LinkedAccountRecord[],
): Promise<void> {
  // A single account cannot cause a deadlock.
  if (accounts.length < 2) return;
  await lockNames(
    em,
    'accounts',
    accounts.map(({ type, subject }) => `${app.id} ${type} ${lookupKey(subject)}`),
  );
}

/** Indexes the current names and addresses of accounts for search. */
export async function storeSearchTerms(
  context: OperationContext,
  user: UserIdentity,
  accounts: readonly { readonly accountId: string; readonly account: LinkedAccountRecord }[],
): Promise<void> {
  const rows = accounts.flatMap(({ accountId, account }) =>
    searchTermsOf(account).map((term) => ({
      app_id: context.app.id,
      term,
      user_created_at_ms: user.created_at_ms,
      user_id: user.id,
      account_id: accountId,
    })),
  );
  if (rows.length > 0)
    await context.em.getKysely<Tables>().insertInto('user_search_terms').values(rows).execute();
}

/** Removes accounts from the search index. */
export async function removeSearchTerms(
  { em }: Pick<OperationContext, 'em'>,
  accountIds: readonly string[],
): Promise<void> {
  if (accountIds.length === 0) return;
  await em.nativeDelete(UserSearchTermEntity, { accountId: { $in: accountIds } });
}

/** Returns the 409 error that clients must not retry, because the account stays linked to its user. */
function linkedToAnotherUser(): ApiError {
  return new ApiError('linked_to_another_user', undefined, { headers: { 'x-should-retry': 'false' } });
}

/**
 * Checks that accounts are compatible: at most one of each limited kind, and no duplicates.
 *
 * @param pointer JSON pointer to the list in the request body.
 * @throws ApiError cannot_link_more_of_type, invalid_data
 */
export function requireOneOfEachKind(accounts: readonly LinkedAccountRecord[], pointer: string): void {
  const seen = new Set<string>();
  for (const [index, { type, subject }] of accounts.entries()) {
    const key = REPEATABLE_TYPES.has(type) ? `${type} ${subject}` : type;
    if (seen.has(key)) {
      if (REPEATABLE_TYPES.has(type)) throw invalidField(`${pointer}/${index}`, 'expected distinct accounts');
      throw cannotLinkMore(type, `${pointer}/${index}`);
    }
    seen.add(key);
  }
}

/** Returns the 400 error for a second account of a kind that allows only one. */
export function cannotLinkMore(type: string, pointer: string): ApiError {
  const message = `a user has at most one account of type \`${type}\``;
  return new ApiError('cannot_link_more_of_type', undefined, {
    data: { issues: [{ in: 'body', pointer, message }] },
  });
}

function toRow(
  context: OperationContext,
  user: UserIdentity,
  { account, position, usableAtMs }: { account: NewAccount; position: number; usableAtMs: number | null },
): LinkedAccountRow {
  return {
    id: context.ids.cuid2(),
    app_id: context.app.id,
    user_id: user.id,
    position,
    type: account.type,
    subject: lookupKey(account.subject),
    username: account.username === null ? null : lookupKey(account.username),
    wallet_id: account.wallet?.id ?? null,
    details: JSON.stringify(account.details),
    verified_at_ms: context.nowMs,
    first_verified_at_ms: context.nowMs,
    latest_verified_at_ms: context.nowMs,
    usable_at_ms: usableAtMs,
  };
}
