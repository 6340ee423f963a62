import { normalizeAddress } from '../../../assets/normalize-address.ts';
import { ApiError } from '../../../errors.ts';
import type { UnlinkUserAccountRequest } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { findUserForUpdate, type StoredUser } from '../../access/user-records/find-user.ts';
import type { StoredAccount } from '../../access/user-records/user-row.ts';
import { recordEvent } from '../../base/events/record-event.ts';
import { lookupKey } from '../../base/lookup-keys/lookup-key.ts';
import type { Tables } from '../../tables.ts';
import { authorizeIdentityChange } from './authorize-identity-change.ts';
import { normalizeDiscordUsername, normalizeEmail, normalizePhoneNumber } from './linked-account-kinds.ts';
import { linkedAccountView } from './linked-account-view.ts';
import { removeSearchTerms } from './store-accounts.ts';
import { userView } from './user-view.ts';

// HOT: users are looked up and searched by prepared queries (bench `users`), so every write to them goes through
// Kysely.

/**
 * Unlinks an account from a user, so that others can link it.
 *
 * @throws ApiError not_found; the codes of `requireOwner`; linked_account_not_found; cannot_unlink_embedded_wallet; cannot_unlink_sole_account.
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
  await context.em.getKysely<Tables>().deleteFrom('linked_accounts').where('id', '=', account.id).execute();
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

/** CHOICE: embedded wallets do not identify a user, so they do not count as the last remaining account. */
function identifies({ wallet, type }: StoredAccount): boolean {
  return wallet === null && type !== 'smart_wallet';
}

/**
 * CHOICE: a handle is the account's unique subject or its public name. `provider` distinguishes cross-app accounts;
 * for all other kinds the type already does.
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
