import { normalizeAddress } from '../../../engine/assets/addresses.ts';
import { ApiError, invalidField, notFound } from '../../../errors.ts';
import type { LinkedAccountInput, UnlinkUserAccountRequest } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import type { Safeguards } from '../../../ports/requests.ts';
import { readAppSettings } from '../../access/apps/app-settings.ts';
import { findApp } from '../../access/apps/find-app.ts';
import { membershipsOf } from '../../access/key-quorums/find-key-quorum.ts';
import { type OperatorCaller, recordChange, requireOwnApp } from '../../access/operators/operator.ts';
import { hasLiveKey, requireUserKey } from '../../access/owners/require-authorization.ts';
import { didOf, findUserForUpdate, getUser } from '../../access/user-records/find-user.ts';
import {
  LinkedAccountEntity,
  type StoredAccount,
  type StoredUser,
  UserEntity,
  UserSearchTermEntity,
} from '../../access/user-records/user.entity.ts';
import { recordEvent } from '../../base/events/events.ts';
import { lookupKey } from '../../base/lookup-keys/lookup-key.ts';
import { readSafeguards } from '../../base/safeguards/safeguards.ts';
import type { Tables } from '../../tables.ts';
import { WalletEntity } from '../wallets/wallet.entity.ts';
import {
  encodeLinkedAccount,
  type LinkedAccountRecord,
  normalizeDiscordUsername,
  normalizeEmail,
  normalizePhoneNumber,
  REPEATABLE_TYPES,
} from './linked-account-kinds.ts';
import { cannotLinkMore, removeSearchTerms, storeAccounts, storeSearchTerms } from './store-accounts.ts';
import { removeUser } from './user.ts';
import { linkedAccountView, userView } from './user-view.ts';

// KYSELY: memberships are a subquery that several nouns use.

const HOUR_MS = 60 * 60_000;

/** Identifies an account of a kind that test accounts can have. */
interface NamedAccount {
  readonly type: string;
  /** The account in canonical form, or its `lookupKey`. */
  readonly subject: string;
}

/**
 * Authorizes a change of the accounts by which a user logs in. Whoever logs in as a member of a key quorum gets keys
 * that sign for the quorum. So the app's settings can require a signature by the user's key, or delay the use of a new
 * account.
 *
 * CHOICE: the rule covers changes of every kind of account, not only of the kinds with which users can log in today.
 * Under `user_key`, a user who cannot log in and has no live key needs no signature, because there is no key to sign
 * with. The app decides who that user is.
 *
 * @returns the time from which a new account may be used to log in, Unix ms; null if it may be used immediately.
 * @throws ApiError what `requireAuthorization` throws.
 */
async function authorizeIdentityChange(context: OperationContext, user: StoredUser): Promise<number | null> {
  const safeguards = await readSafeguards(context);
  const { identity_changes: rule } = safeguards;
  if (rule === 'app_secret' || !(await isQuorumMember(context, user))) return null;
  if (context.proof.signatures.length > 0) {
    await requireUserKey(context, user.row.id);
    return null;
  }
  if (rule !== 'user_key') return context.nowMs + rule.wait_hours * HOUR_MS;
  if (await canAuthorize(context, user, safeguards)) await requireUserKey(context, user.row.id);
  return null;
}

/**
 * Refuses to link a test account to a member of a key quorum, if the app's settings forbid it. Everyone who can read
 * the test credentials could log in as that user.
 *
 * @throws ApiError invalid_data
 */
async function requireNoTestAccount(
  context: OperationContext,
  user: StoredUser,
  account: NamedAccount,
): Promise<void> {
  const { block_linking_test_accounts: isBlocked } = await readSafeguards(context);
  if (!isBlocked || !(await testAccountsOf(context)).has(nameOf(account))) return;
  if (!(await isQuorumMember(context, user))) return;
  throw invalidField('', 'a test account cannot be linked to a user who belongs to a key quorum');
}

async function isQuorumMember({ em }: OperationContext, { row }: StoredUser): Promise<boolean> {
  const database = em.getKysely<Tables>();
  const found = await membershipsOf(database, { kind: 'user', member: row.id }).limit(1).executeTakeFirst();
  return found !== undefined;
}

async function canAuthorize(
  context: OperationContext,
  { row, linkedAccounts }: StoredUser,
  { block_test_logins: areTestLoginsBlocked }: Safeguards,
): Promise<boolean> {
  if (linkedAccounts.some(({ type }) => type === 'custom_auth')) return true;
  if (await hasLiveKey(context, row.id)) return true;
  if (areTestLoginsBlocked) return false;
  const tests = await testAccountsOf(context);
  return linkedAccounts.some((account) => tests.has(nameOf(account)));
}

async function testAccountsOf({ app, em }: OperationContext): Promise<ReadonlySet<string>> {
  const { settings } = await findApp(em, app.id);
  return new Set(
    readAppSettings(settings).test_accounts.flatMap(({ email, phone_number: number }) => [
      nameOf({ type: 'email', subject: normalizeEmail(email) }),
      nameOf({ type: 'phone', subject: normalizePhoneNumber(number) ?? number }),
    ]),
  );
}

function nameOf({ type, subject }: NamedAccount): string {
  return `${type} ${lookupKey(subject)}`;
}

/**
 * Links an account to a user. An account that the user already has is updated with the given data and a new
 * verification time. A new account of a member of a key quorum may need a signature by the user's key, or may have to
 * wait before it can be used.
 *
 * @throws ApiError not_found; invalid_data; what `requireAuthorization` throws; cannot_link_more_of_type when the user
 * already has another account of a kind limited to one; linked_to_another_user; max_accounts_reached.
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
  for (const added of stored) await recordAccountEvent(context, 'user.linked_account', changed, added);
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
  // Only accounts without an embedded wallet store their data. The data of the others comes from the wallet itself.
  const shown =
    known.wallet === null
      ? {
          details: JSON.stringify(account.details),
          username: account.username === null ? null : lookupKey(account.username),
        }
      : {};
  const change = { ...shown, verified_at_ms: context.nowMs, latest_verified_at_ms: context.nowMs };
  await context.em.nativeUpdate(
    LinkedAccountEntity,
    { id: known.id },
    { ...shown, verifiedAtMs: context.nowMs, latestVerifiedAtMs: context.nowMs },
  );
  await removeSearchTerms(context, [known.id]);
  await storeSearchTerms(context, user.row, [{ accountId: known.id, account }]);
  const updated = { ...known, ...change };
  const linkedAccounts = user.linkedAccounts.map((linked) => (linked === known ? updated : linked));
  const changed = { row: user.row, linkedAccounts };
  await recordAccountEvent(context, 'user.updated_account', changed, updated);
  return changed;
}

async function recordAccountEvent(
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

/**
 * Unlinks an account from a user, so that another user can link it.
 *
 * @throws ApiError not_found; what `requireAuthorization` throws; linked_account_not_found;
 * cannot_unlink_embedded_wallet; cannot_unlink_sole_account.
 */
export async function unlinkAccount(
  context: OperationContext,
  userId: string,
  named: UnlinkUserAccountRequest,
): Promise<StoredUser> {
  const user = await findUserForUpdate(context, userId);
  const account = user.linkedAccounts.find((linked) => isNamed(linked, named));
  if (account === undefined) throw new ApiError('linked_account_not_found');
  if (account.wallet !== null) throw new ApiError('cannot_unlink_embedded_wallet');
  const linkedAccounts = user.linkedAccounts.filter((linked) => linked !== account);
  if (identifies(account) && !linkedAccounts.some(identifies)) {
    throw new ApiError('cannot_unlink_sole_account');
  }
  await authorizeIdentityChange(context, user);
  await removeSearchTerms(context, [account.id]);
  await context.em.nativeDelete(LinkedAccountEntity, { id: account.id });
  const changed = { row: user.row, linkedAccounts };
  await recordEvent(context, {
    appId: context.app.id,
    type: 'user.unlinked_account',
    payload: {
      user: userView(changed),
      account: linkedAccountView(account),
    },
  });
  return changed;
}

/**
 * Returns whether an account identifies its user.
 *
 * CHOICE: embedded wallets do not identify a user, so they do not count as the last remaining account.
 */
function identifies({ wallet, type }: StoredAccount): boolean {
  return wallet === null && type !== 'smart_wallet';
}

/**
 * Returns whether a request to unlink names this account.
 *
 * CHOICE: a handle is the account's unique subject or its public name. `provider` distinguishes cross-app accounts; for
 * all other kinds, the type suffices.
 */
function isNamed(account: StoredAccount, { type, handle, provider }: UnlinkUserAccountRequest): boolean {
  if (account.type !== type) return false;
  if (type === 'cross_app' && provider !== undefined) {
    if (JSON.parse(account.details).provider_app_id !== provider) return false;
  }
  if (account.subject === lookupKey(normalizeHandle(type, handle))) return true;
  const name = type === 'discord_oauth' ? normalizeDiscordUsername(handle) : handle;
  return account.username !== null && account.username === lookupKey(name.toLowerCase());
}

function normalizeHandle(type: string, handle: string): string {
  if (type === 'email') return normalizeEmail(handle);
  if (type === 'phone') return normalizePhoneNumber(handle) ?? handle;
  return type === 'wallet' || type === 'smart_wallet' ? normalizeAddress(handle) : handle;
}

type OperatorContext = Pick<OperationContext, 'em' | 'ids' | 'notes' | 'nowMs'> & {
  readonly by: OperatorCaller;
};
type TransferContext = OperatorContext & Pick<OperationContext, 'app'>;

/**
 * Moves the only account of one user to another user of the same app, and deletes the first user. It serves people who
 * have signed up twice. An operator calls it, so there is no authenticated app.
 *
 * The event of the transfer reports the deletion, so `user.deleted` is not recorded as well.
 *
 * @throws ApiError not_found; invalid_data for a transfer to the same user; invalid_state when the first user does not
 * have exactly one account, owns a wallet or belongs to a key quorum, or when the second user already has an account of
 * that kind.
 */
export async function transferAccount(
  operator: OperatorContext,
  { fromUserId, toUserId }: { readonly fromUserId: string; readonly toUserId: string },
): Promise<StoredUser> {
  const context = { ...operator, app: { id: await findAppOfUser(operator, toUserId) } };
  const { from, to } = await lockBoth(context, fromUserId, toUserId);
  const [account, ...others] = from.linkedAccounts;
  if (account === undefined || others.length > 0) {
    throw new ApiError('invalid_state', `the user \`${from.row.id}\` does not have exactly one account`);
  }
  await requireNoWallets(context, from);
  if (!REPEATABLE_TYPES.has(account.type) && to.linkedAccounts.some(({ type }) => type === account.type)) {
    const message = `the user \`${to.row.id}\` already has an account of type \`${account.type}\``;
    throw new ApiError('invalid_state', message);
  }
  const position = 1 + Math.max(-1, ...to.linkedAccounts.map((linked) => linked.position));
  const change = { user_id: to.row.id, position };
  await context.em.nativeUpdate(LinkedAccountEntity, { id: account.id }, { userId: to.row.id, position });
  await context.em.nativeUpdate(
    UserSearchTermEntity,
    { accountId: account.id },
    { userId: to.row.id, userCreatedAtMs: to.row.created_at_ms },
  );
  await removeUser(context, from.row);
  const moved = { ...account, ...change };
  const changed = { row: to.row, linkedAccounts: [...to.linkedAccounts, moved] };
  await recordEvent(context, {
    appId: context.app.id,
    type: 'user.transferred_account',
    payload: {
      fromUser: { id: from.row.id },
      toUser: userView(changed),
      account: linkedAccountView(moved),
      deletedUser: true,
    },
  });
  await recordChange(context, {
    appId: context.app.id,
    action: 'takeOverUser',
    targets: { user_id: to.row.id, from_user_id: from.row.id },
  });
  return changed;
}

async function findAppOfUser({ em, by }: OperatorContext, userId: string): Promise<string> {
  const id = didOf(userId);
  if (id === undefined) throw notFound('User');
  const user = await em.findOne(UserEntity, { id }, { disableIdentityMap: true });
  if (user === null) throw notFound('User');
  requireOwnApp(by, user.appId, 'User');
  return user.appId;
}

/**
 * Locks both users and returns them.
 *
 * INVARIANT: users are locked in the order of their ids, so that opposite transfers cannot deadlock.
 *
 * @throws ApiError not_found; invalid_data when both are the same user.
 */
async function lockBoth(context: TransferContext, fromUserId: string, toUserId: string) {
  const [first, second] = [await getUser(context, fromUserId), await getUser(context, toUserId)];
  if (first === undefined || second === undefined) throw notFound('User');
  if (first.row.id === second.row.id) throw invalidField('/from_user_id', 'expected another user');
  const locked = new Map<string, StoredUser>();
  for (const id of [first.row.id, second.row.id].sort()) locked.set(id, await findUserForUpdate(context, id));
  return { from: locked.get(first.row.id)!, to: locked.get(second.row.id)! };
}

/**
 * Refuses to delete a user who owns a wallet or belongs to a key quorum, because nobody could sign for the user any
 * more.
 *
 * @throws ApiError invalid_state
 */
async function requireNoWallets({ em }: TransferContext, { row, linkedAccounts }: StoredUser): Promise<void> {
  const database = em.getKysely<Tables>();
  const member = await membershipsOf(database, { kind: 'user', member: row.id }).limit(1).executeTakeFirst();
  const ofEntity = await em.count(WalletEntity, { entityId: row.id });
  const hasEmbedded = linkedAccounts.some(({ wallet }) => wallet !== null);
  if (member === undefined && ofEntity === 0 && !hasEmbedded) return;
  throw new ApiError('invalid_state', `the user \`${row.id}\` owns a wallet or belongs to a key quorum`);
}
