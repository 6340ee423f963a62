import { notFound } from '../../../errors.ts';
import type { SearchUsersByIdentifiersRequest, SearchUsersRequest } from '../../../generated/schemas.ts';
import { findUser, getUser, type StoredUser, type UserContext } from '../../access/user-records/find-user.ts';
import { normalizeAddress } from '../../base/addresses/normalize-address.ts';
import { lookupKey } from '../../base/lookup-keys/lookup-key.ts';
import type { Tables } from '../../tables.ts';
import { normalizeEmail, normalizePhoneNumber } from './linked-account-kinds.ts';
import { toSearchTerm } from './search-terms.ts';

// HOT: users are looked up and searched by prepared queries (bench `users`), so every write to them goes through
// Kysely.

// CHOICE: when more users match a prefix, the newest among the first matches in alphabetical order.
const MAX_FITS = 1000;

// The most values in one statement; databases allow a few thousand parameters.
const MAX_VALUES = 500;

/** A matching user, with the ranking among several matches. */
interface Fit {
  readonly user_id: string;
  readonly user_created_at_ms: number;
}

/**
 * The user who fits a term or one of the identifiers; of several, the one made last.
 *
 * CHOICE: a term fits the id, address, number or name that it equals, else one that it begins, upper and lower case
 * being the same.
 *
 * @throws ApiError not_found
 */
export async function searchUsers(context: UserContext, search: SearchUsersRequest): Promise<StoredUser> {
  if (!('searchTerm' in search)) return findUser(context, (await fitIdentifiers(context, search)) ?? '');
  const { searchTerm } = search;
  const known = searchTerm.startsWith('did:') ? await getUser(context, searchTerm) : undefined;
  if (known !== undefined) return known;
  const fit = (await fitWhole(context, searchTerm)) ?? (await fitBeginning(context, searchTerm));
  const user = await getUser(context, fit?.user_id ?? searchTerm);
  if (user === undefined) throw notFound('User');
  return user;
}

async function fitWhole({ app, em }: UserContext, searchTerm: string): Promise<Fit | undefined> {
  // A number may lack its country code or be spaced differently.
  const phoneNumber = normalizePhoneNumber(searchTerm);
  const terms = [searchTerm, ...(phoneNumber === undefined ? [] : [phoneNumber])];
  const fits: (Fit | undefined)[] = [];
  for (const term of terms.flatMap((text) => toSearchTerm(text) ?? [])) {
    const fit = await em
      .getKysely<Tables>()
      .selectFrom('user_search_terms')
      .select(['user_id', 'user_created_at_ms'])
      .where('app_id', '=', app.id)
      .where('term', '=', term)
      .orderBy('user_created_at_ms', 'desc')
      .orderBy('user_id', 'desc')
      .limit(1)
      .executeTakeFirst();
    fits.push(fit);
  }
  return newest(fits);
}

async function fitBeginning({ app, em }: UserContext, searchTerm: string): Promise<Fit | undefined> {
  const first = toSearchTerm(searchTerm);
  if (first === undefined) return undefined;
  // The exclusive end of the prefix range: UTF-8 never contains 0xff, so the last byte can be incremented.
  const end = Buffer.from(first);
  end[end.length - 1] = (end.at(-1) ?? 0) + 1;
  const fits = await em
    .getKysely<Tables>()
    .selectFrom('user_search_terms')
    .select(['user_id', 'user_created_at_ms'])
    .where('app_id', '=', app.id)
    .where('term', '>=', first)
    .where('term', '<', end)
    .orderBy('term')
    .limit(MAX_FITS)
    .execute();
  return newest(fits);
}

async function fitIdentifiers(
  context: UserContext,
  { emails, phoneNumbers, walletAddresses }: SearchUsersByIdentifiersRequest,
): Promise<string | undefined> {
  const wallets = walletAddresses.map(normalizeAddress);
  const subjects: [type: string, subjects: readonly string[]][] = [
    ['email', emails.map(normalizeEmail)],
    ['phone', phoneNumbers.flatMap((number) => normalizePhoneNumber(number) ?? [])],
    ['wallet', wallets],
    ['smart_wallet', wallets],
  ];
  const fits: (Fit | undefined)[] = [];
  for (const [type, values] of subjects) {
    const keys = [...new Set(values.map(lookupKey))];
    for (let at = 0; at < keys.length; at += MAX_VALUES) {
      fits.push(await fitSubjects(context, type, keys.slice(at, at + MAX_VALUES)));
    }
  }
  return newest(fits)?.user_id;
}

function fitSubjects(
  { app, em }: UserContext,
  type: string,
  subjects: readonly string[],
): Promise<Fit | undefined> {
  return em
    .getKysely<Tables>()
    .selectFrom('linked_accounts')
    .innerJoin('users', 'users.id', 'linked_accounts.user_id')
    .select(['users.id as user_id', 'users.created_at_ms as user_created_at_ms'])
    .where('linked_accounts.app_id', '=', app.id)
    .where('type', '=', type)
    .where('subject', 'in', [...subjects])
    .orderBy('users.created_at_ms', 'desc')
    .orderBy('users.id', 'desc')
    .limit(1)
    .executeTakeFirst();
}

function newest(fits: readonly (Fit | undefined)[]): Fit | undefined {
  return fits
    .filter((fit) => fit !== undefined)
    .reduce<Fit | undefined>(
      (best, fit) => (best === undefined || isNewer(fit, best) ? fit : best),
      undefined,
    );
}

function isNewer(left: Fit, right: Fit): boolean {
  const later = left.user_created_at_ms - right.user_created_at_ms;
  return later > 0 || (later === 0 && left.user_id > right.user_id);
}
