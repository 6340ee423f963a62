import { ApiError, invalidField } from '../../../errors.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { lockNames } from '../../../storage/locks.ts';
import type { LinkedAccountRow, StoredAccount, UserRow } from '../../access/user-records/user-row.ts';
import { lookupKey } from '../../base/lookup-keys/lookup-key.ts';
import type { Tables } from '../../tables.ts';
import type { WalletRow } from '../wallets/wallet-row.ts';
import { type LinkedAccountRecord, REPEATABLE_TYPES } from './linked-account-kinds.ts';
import { searchTermsOf } from './search-terms.ts';

/**
 * CHOICE: how many accounts a user may have. Every answer and event that shows the user shows all of them.
 */
const MAX_ACCOUNTS = 500;

/** An account that is to be linked; `wallet` when the service holds it. */
export interface NewAccount extends LinkedAccountRecord {
  readonly wallet?: WalletRow;
}

export type UserIdentity = Pick<UserRow, 'id' | 'created_at_ms'>;

/**
 * Links accounts to a user and makes them searchable. All of them count as verified now.
 *
 * @param linked the accounts that the user has; whoever calls this holds the user, or has just made it.
 * @throws ApiError linked_to_another_user when a user of the app has one of them: of concurrent requests for the same
 * account exactly one succeeds. max_accounts_reached
 */
export async function storeAccounts(
  context: OperationContext,
  user: UserIdentity,
  { linked, accounts }: { linked: readonly StoredAccount[]; accounts: readonly NewAccount[] },
): Promise<StoredAccount[]> {
  if (accounts.length === 0) return [];
  if (linked.length + accounts.length > MAX_ACCOUNTS) {
    throw new ApiError('max_accounts_reached', `a user has at most ${MAX_ACCOUNTS} linked accounts`);
  }
  const from = 1 + Math.max(-1, ...linked.map((account) => account.position));
  const rows = accounts.map((account, index) => toRow(context, user, { account, position: from + index }));
  // INVARIANT: the unique index over app, type and subject decides between concurrent requests; the loser waits for
  // the winner's transaction and then inserts nothing.
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
 * Makes everybody wait who is about to link some of the same accounts, until the transaction ends. Whoever links
 * several calls it first: two requests that each have what the other one waits for would never end.
 */
export async function queueForAccounts(
  { app, em }: Pick<OperationContext, 'app' | 'em'>,
  accounts: readonly LinkedAccountRecord[],
): Promise<void> {
  // One account is waited for with nothing in hand.
  if (accounts.length < 2) return;
  await lockNames(
    em,
    accounts.map(({ type, subject }) => `${app.id} ${type} ${lookupKey(subject)}`),
  );
}

/** Makes accounts searchable by their names and addresses as they are now. */
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

/** Makes accounts unsearchable. */
export async function removeSearchTerms(
  { em }: Pick<OperationContext, 'em'>,
  accountIds: readonly string[],
): Promise<void> {
  if (accountIds.length === 0) return;
  await em
    .getKysely<Tables>()
    .deleteFrom('user_search_terms')
    .where('account_id', 'in', [...accountIds])
    .execute();
}

/** 409 that a client must not repeat: the account stays where it is. */
function linkedToAnotherUser(): ApiError {
  return new ApiError('linked_to_another_user', undefined, { headers: { 'x-should-retry': 'false' } });
}

/**
 * Checks that accounts may stand side by side: one of each kind, and no account twice.
 *
 * @param pointer JSON pointer to the list in the request body.
 * @throws ApiError cannot_link_more_of_type, invalid_data
 */
export function requireOneOfEachKind(accounts: readonly LinkedAccountRecord[], pointer: string): void {
  const seen = new Set<string>();
  for (const [index, { type, subject }] of accounts.entries()) {
    const key = REPEATABLE_TYPES.has(type) ? `${type} ${subject}` : type;
    if (seen.has(key)) {
      if (REPEATABLE_TYPES.has(type))
        throw invalidField(`${pointer}/${index}`, 'the same account stands before');
      throw cannotLinkMore(type, `${pointer}/${index}`);
    }
    seen.add(key);
  }
}

/** 400 for a second account of a kind that allows one. */
export function cannotLinkMore(type: string, pointer: string): ApiError {
  const message = `a user has at most one account of type \`${type}\``;
  return new ApiError('cannot_link_more_of_type', undefined, {
    data: { issues: [{ in: 'body', pointer, message }] },
  });
}

function toRow(
  context: OperationContext,
  user: UserIdentity,
  { account, position }: { account: NewAccount; position: number },
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
  };
}
