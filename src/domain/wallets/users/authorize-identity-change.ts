import { invalidField } from '../../../errors.ts';
import type { OperationContext } from '../../../operation-context.ts';
import type { Safeguards } from '../../../ports/safeguards.ts';
import { readAppSettings } from '../../access/apps/app-settings.ts';
import { findApp } from '../../access/apps/find-app.ts';
import { membershipsOf } from '../../access/key-quorums/list-memberships.ts';
import { hasLiveKey, requireUserKey } from '../../access/owners/require-owner.ts';
import type { StoredUser } from '../../access/user-records/user-row.ts';
import { lookupKey } from '../../base/lookup-keys/lookup-key.ts';
import { readSafeguards } from '../../base/safeguards/read-safeguards.ts';
import type { Tables } from '../../tables.ts';
import { normalizeEmail, normalizePhoneNumber } from './linked-account-kinds.ts';

// HOT: reads memberships as key quorums do; no bench case covers it.

const HOUR_MS = 60 * 60_000;

/** The unique key of an account, as far as test accounts have it. */
interface NamedAccount {
  readonly type: string;
  /** In canonical form, or its `lookupKey`. */
  readonly subject: string;
}

/**
 * Authorizes a change of the accounts by which a user logs in. A login as a member of a key quorum gives
 * keys that sign for it, so the app's settings can require a key of that user, or let a new account wait.
 *
 * CHOICE: under `user_key`, a user who cannot log in and has no live key needs none: there is no key to sign with, and the
 * app decides who that user is. Every account counts as a way to log in, not only the kinds that this server
 * accepts today.
 *
 * Result: Unix ms from which a new account may be used to log in; null: at once.
 *
 * @throws ApiError the codes of `requireOwner`
 */
export async function authorizeIdentityChange(
  context: OperationContext,
  user: StoredUser,
): Promise<number | null> {
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
 * Refuses to link a test account to a member of a key quorum, where the app's settings forbid it: every reader of the
 * test credentials could log in as that user.
 *
 * @throws ApiError invalid_data
 */
export async function requireNoTestAccount(
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
