import type { LinkedAccountInput } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { findUserForUpdate, type StoredUser } from '../../access/user-records/find-user.ts';
import type { StoredAccount } from '../../access/user-records/user-row.ts';
import { recordEvent } from '../../base/events/record-event.ts';
import { lookupKey } from '../../base/lookup-keys/lookup-key.ts';
import type { Tables } from '../../tables.ts';
import { authorizeIdentityChange, requireNoTestAccount } from './authorize-identity-change.ts';
import { encodeLinkedAccount, type LinkedAccountRecord, REPEATABLE_TYPES } from './linked-account-kinds.ts';
import { linkedAccountView } from './linked-account-view.ts';
import { cannotLinkMore, removeSearchTerms, storeAccounts, storeSearchTerms } from './store-accounts.ts';
import { userView } from './user-view.ts';

// HOT: users are looked up and searched by prepared queries (bench `users`), so every write to them goes through
// Kysely.

/**
 * Links an account to a user. An account the user already has is updated with the given data and a new verification
 * time. A new account of a member of a key quorum may need a key of that user, or wait until it can be used.
 *
 * @throws ApiError not_found; the codes of `requireOwner`; invalid_data; cannot_link_more_of_type when the user already has another account of a
 * kind limited to one; linked_to_another_user; max_accounts_reached.
 */
export async function linkAccount(
  context: OperationContext,
  userId: string,
  input: LinkedAccountInput,
): Promise<StoredUser> {
  const account = encodeLinkedAccount(input, '');
  const user = await findUserForUpdate(context, userId);
  const known = user.linkedAccounts.find((linked) => isSame(linked, account));
  if (known !== undefined) return refresh(context, user, { known, account });
  const { type } = account;
  if (!REPEATABLE_TYPES.has(type) && user.linkedAccounts.some((linked) => linked.type === type)) {
    throw cannotLinkMore(type, '/type');
  }
  const usableAtMs = await authorizeIdentityChange(context, user);
  await requireNoTestAccount(context, user, account);
  const linked = user.linkedAccounts;
  const stored = await storeAccounts(context, user.row, { linked, accounts: [account], usableAtMs });
  const changed = { row: user.row, linkedAccounts: [...linked, ...stored] };
  for (const added of stored) await recordChange(context, 'user.linked_account', changed, added);
  return changed;
}

function isSame(linked: StoredAccount, { type, subject }: LinkedAccountRecord): boolean {
  return linked.type === type && linked.subject === lookupKey(subject);
}

async function refresh(
  context: OperationContext,
  user: StoredUser,
  { known, account }: { known: StoredAccount; account: LinkedAccountRecord },
): Promise<StoredUser> {
  // The data of an embedded wallet account comes from the wallet.
  const shown =
    known.wallet === null
      ? {
          details: JSON.stringify(account.details),
          username: account.username === null ? null : lookupKey(account.username),
        }
      : {};
  const change = { ...shown, verified_at_ms: context.nowMs, latest_verified_at_ms: context.nowMs };
  const database = context.em.getKysely<Tables>();
  await database.updateTable('linked_accounts').set(change).where('id', '=', known.id).execute();
  await removeSearchTerms(context, [known.id]);
  await storeSearchTerms(context, user.row, [{ accountId: known.id, account }]);
  const updated = { ...known, ...change };
  const linkedAccounts = user.linkedAccounts.map((linked) => (linked === known ? updated : linked));
  const changed = { row: user.row, linkedAccounts };
  await recordChange(context, 'user.updated_account', changed, updated);
  return changed;
}

async function recordChange(
  context: OperationContext,
  event: 'user.linked_account' | 'user.updated_account',
  user: StoredUser,
  account: StoredAccount,
): Promise<void> {
  await recordEvent(context, {
    appId: context.app.id,
    type: event,
    payload: {
      user: userView(user),
      account: linkedAccountView(account),
      ...(event === 'user.linked_account' && account.usable_at_ms !== null
        ? { usable_at: Math.floor(account.usable_at_ms / 1000) }
        : {}),
    },
  });
}
