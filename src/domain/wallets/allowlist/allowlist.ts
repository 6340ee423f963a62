import { normalizeWalletAddress } from '../../../engine/assets/addresses.ts';
import { ApiError, invalidField, notFound } from '../../../errors.ts';
import type { AllowlistEntry, AllowlistEntryRequest } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { findApp } from '../../access/apps/find-app.ts';
import { normalizeEmail, normalizePhoneNumber } from '../users/linked-account-kinds.ts';
import { AllowlistEntryEntity, type StoredAllowlistEntry } from './allowlist-entry.entity.ts';

// The grammar of RFC 1035 §2.3.1, with a leading digit allowed as in RFC 1123 §2.1.
const DOMAIN = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/i;

/**
 * Returns an entry's value in the stored form of linked accounts, so that the two can be compared.
 *
 * @throws ApiError invalid_data
 */
function readAllowlistValue({ type, value }: AllowlistEntryRequest): string {
  const normal = normalize(type, value);
  if (normal === undefined) throw invalidField('/value', expectations[type]);
  return normal;
}

const expectations: Readonly<Record<AllowlistEntryRequest['type'], string>> = {
  email: 'expected an email address',
  emailDomain: 'expected a domain such as `acme.example`',
  phone: 'expected a phone number',
  wallet: 'expected an address of `ethereum` or `solana`',
};

function normalize(type: AllowlistEntryRequest['type'], value: string): string | undefined {
  if (type === 'phone') return normalizePhoneNumber(value);
  if (type === 'wallet') {
    return normalizeWalletAddress('ethereum', value) ?? normalizeWalletAddress('solana', value);
  }
  if (type === 'emailDomain' && !DOMAIN.test(value)) return undefined;
  return normalizeEmail(value);
}

/** CHOICE: the list has no pages, so its length is limited. Older entries still apply and can be deleted. */
const MAX_LISTED = 1_000;

/** Lists the newest entries of the app's allowlist, newest first. */
export async function listAllowlistEntries({
  app,
  em,
}: Pick<OperationContext, 'app' | 'em'>): Promise<AllowlistEntry[]> {
  const entries = await em.find(
    AllowlistEntryEntity,
    { appId: app.id },
    { orderBy: { createdAtMs: 'desc', id: 'desc' }, limit: MAX_LISTED },
  );
  return entries.map(entryView);
}

/**
 * Adds an entry to the app's allowlist. An existing entry is returned unchanged.
 *
 * @throws ApiError invalid_data
 */
export async function createAllowlistEntry(
  context: OperationContext,
  input: AllowlistEntryRequest,
): Promise<AllowlistEntry> {
  const { app, em } = context;
  const value = readAllowlistValue(input);
  const known = await em.findOne(AllowlistEntryEntity, { appId: app.id, type: input.type, value });
  const entry =
    known ??
    em.create(AllowlistEntryEntity, {
      id: context.ids.cuid(),
      appId: app.id,
      type: input.type,
      value,
      acceptedAtMs: null,
      createdAtMs: context.nowMs,
    });
  // If a concurrent request adds the same entry, this request collides and runs again.
  await em.flush();
  return entryView(entry);
}

/**
 * Removes an identity or a domain from the app's allowlist.
 *
 * @throws ApiError invalid_data, not_found
 */
export async function deleteAllowlistEntry(
  { app, em }: OperationContext,
  input: AllowlistEntryRequest,
): Promise<void> {
  const value = readAllowlistValue(input);
  const deleted = await em.nativeDelete(AllowlistEntryEntity, { appId: app.id, type: input.type, value });
  if (deleted === 0) throw notFound('Allowlist entry');
}

function entryView(entry: StoredAllowlistEntry): AllowlistEntry {
  return {
    id: entry.id,
    appId: entry.appId,
    type: entry.type as AllowlistEntry['type'],
    value: entry.value,
    acceptedAt: entry.acceptedAtMs,
  };
}

/** An account with which a user logs in, in its stored form. */
interface LoginAccount {
  readonly type: string;
  /** Lower-case e-mail address, phone number in international form, or canonical wallet address. */
  readonly subject: string;
}

/**
 * Refuses a login unless one of the accounts is on the app's allowlist. Applies only if the setting `allowlist_enabled`
 * is on. The first login by an entry marks the entry as accepted.
 *
 * CHOICE: a single account of the user on the list is enough. The list can contain only email, phone and wallet
 * accounts.
 *
 * @throws ApiError allowlist_rejected
 */
export async function requireAllowlisted(
  context: Pick<OperationContext, 'app' | 'em' | 'nowMs'>,
  accounts: readonly LoginAccount[],
): Promise<void> {
  const { settings } = await findApp(context.em, context.app.id);
  if (settings.allowlist_enabled !== true) return;
  for (const { type, value } of accounts.flatMap(entriesFor)) {
    const entry = await context.em.findOne(AllowlistEntryEntity, { appId: context.app.id, type, value });
    if (entry === null) continue;
    entry.acceptedAtMs ??= context.nowMs;
    await context.em.flush();
    return;
  }
  throw new ApiError('allowlist_rejected');
}

/** Returns the entries that would admit an account. */
function entriesFor({ type, subject }: LoginAccount): { type: string; value: string }[] {
  if (type === 'email') {
    const domain = subject.slice(subject.lastIndexOf('@') + 1);
    return [
      { type: 'email', value: subject },
      { type: 'emailDomain', value: domain },
    ];
  }
  return type === 'phone' || type === 'wallet' ? [{ type, value: subject }] : [];
}
