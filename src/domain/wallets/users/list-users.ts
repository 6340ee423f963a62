import { normalizeAddress } from '../../../engine/assets/addresses.ts';
import { invalidQuery, notFound } from '../../../errors.ts';
import type { SearchUsersByIdentifiersRequest, SearchUsersRequest } from '../../../generated/schemas.ts';
import { olderThan, pageOf } from '../../../storage/find-page.ts';
import {
  findUser,
  getUser,
  type UserContext,
  usersWithAccounts,
} from '../../access/user-records/find-user.ts';
import { type StoredUser, userColumns } from '../../access/user-records/user.entity.ts';
import { lookupKey } from '../../base/lookup-keys/lookup-key.ts';
import type { Tables } from '../../tables.ts';
import { type LinkedAccountRecord, normalizeEmail, normalizePhoneNumber } from './linked-account-kinds.ts';

// HOT: lists and searches users (bench `users`).

const MAX_PAGE = 100;

interface UserPage {
  readonly users: StoredUser[];
  readonly nextCursor: string | null;
}

/**
 * Lists one page of the app's users, newest first.
 *
 * @param cursor the `nextCursor` of the previous page.
 * @param limit 1 to 100, by default 100.
 * @throws ApiError invalid_data for a cursor that is not a user of the app.
 */
export async function listUsers(
  context: UserContext,
  { cursor, limit = MAX_PAGE }: { cursor?: string | undefined; limit?: number | undefined },
): Promise<UserPage> {
  const query = context.em
    .getKysely<Tables>()
    .selectFrom('users')
    .select(userColumns)
    .where('app_id', '=', context.app.id)
    .orderBy('created_at_ms', 'desc')
    .orderBy('id', 'desc')
    .limit(limit + 1);
  const rows = await (cursor === undefined
    ? query
    : query.where(olderThan(await readCursor(context, cursor), cursor))
  ).execute();
  const { page, nextCursor } = pageOf(rows, limit);
  return { users: await usersWithAccounts(context, page), nextCursor };
}

/**
 * Returns the creation time of a cursor's user, Unix ms. The user may have been deleted in the meantime.
 *
 * @throws ApiError invalid_data
 */
async function readCursor({ app, em }: UserContext, cursor: string): Promise<number> {
  if (/^did:service:[a-z0-9]{1,64}$/.test(cursor)) {
    for (const table of ['users', 'deleted_users'] as const) {
      const row = await em
        .getKysely<Tables>()
        .selectFrom(table)
        .select('created_at_ms')
        .where('id', '=', cursor)
        .where('app_id', '=', app.id)
        .executeTakeFirst();
      if (row !== undefined) return row.created_at_ms;
    }
  }
  throw invalidQuery('cursor', 'expected the `next_cursor` of a previous page');
}

// The length of the longest e-mail address, in bytes. CHOICE: longer strings are not indexed for search; only an exact
// look-up finds them.
const MAX_TERM_BYTES = 254;

/** Members of linked accounts that contain a name or an address, and by which a user is also found. */
const namedMembers = ['email', 'name', 'display_name'] as const;

/** Returns the search terms of an account, in index form. */
export function searchTermsOf({ subject, username, details }: LinkedAccountRecord): Uint8Array[] {
  const texts = [subject, username, ...namedMembers.map((name) => details[name])];
  const terms = texts.flatMap((text) => (typeof text === 'string' ? (toSearchTerm(text) ?? []) : []));
  return [...new Map(terms.map((term) => [term.toString('hex'), term])).values()];
}

/**
 * Converts a string to index form; undefined when it is empty or too long. Phone numbers lose spaces and dashes, other
 * strings become lower case.
 */
export function toSearchTerm(text: string): Buffer | undefined {
  const term = Buffer.from(isPhoneNumber(text) ? text.replace(/[^+0-9]/g, '') : text.toLowerCase());
  return term.length > 0 && term.length <= MAX_TERM_BYTES ? term : undefined;
}

function isPhoneNumber(text: string): boolean {
  return /^\+[0-9 ().-]+$/.test(text);
}

// CHOICE: when more users match a prefix, the result is the newest user among this many matches in alphabetical
// order.
const MAX_MATCHES = 1000;

// The maximum number of values in one statement; databases allow a few thousand parameters.
const MAX_VALUES = 500;

/** A user who matches a search, with the values that rank the user among several matches. */
interface Match {
  readonly user_id: string;
  readonly user_created_at_ms: number;
}

/**
 * Finds the user who matches a term or one of the identifiers. If several match, finds the user who was created last.
 *
 * CHOICE: a term matches a user whose id, address, number or name equals the term. If there is no such user, it matches
 * a user whose id, address, number or name starts with the term. Letter case is ignored.
 *
 * @throws ApiError not_found
 */
export async function searchUsers(context: UserContext, search: SearchUsersRequest): Promise<StoredUser> {
  if (!('searchTerm' in search)) return findUser(context, (await matchIdentifiers(context, search)) ?? '');
  const { searchTerm } = search;
  const known = searchTerm.startsWith('did:') ? await getUser(context, searchTerm) : undefined;
  if (known !== undefined) return known;
  const match = (await matchWhole(context, searchTerm)) ?? (await matchBeginning(context, searchTerm));
  const user = await getUser(context, match?.user_id ?? searchTerm);
  if (user === undefined) throw notFound('User');
  return user;
}

async function matchWhole({ app, em }: UserContext, searchTerm: string): Promise<Match | undefined> {
  // The number may lack its country code or have spaces in other places.
  const phoneNumber = normalizePhoneNumber(searchTerm);
  const terms = [searchTerm, ...(phoneNumber === undefined ? [] : [phoneNumber])];
  const matches: (Match | undefined)[] = [];
  for (const term of terms.flatMap((text) => toSearchTerm(text) ?? [])) {
    const match = await em
      .getKysely<Tables>()
      .selectFrom('user_search_terms')
      .select(['user_id', 'user_created_at_ms'])
      .where('app_id', '=', app.id)
      .where('term', '=', term)
      .orderBy('user_created_at_ms', 'desc')
      .orderBy('user_id', 'desc')
      .limit(1)
      .executeTakeFirst();
    matches.push(match);
  }
  return newest(matches);
}

async function matchBeginning({ app, em }: UserContext, searchTerm: string): Promise<Match | undefined> {
  const first = toSearchTerm(searchTerm);
  if (first === undefined) return undefined;
  // The exclusive end of the prefix range. UTF-8 never contains 0xff, so the last byte can be incremented.
  const end = Buffer.from(first);
  end[end.length - 1] = (end.at(-1) ?? 0) + 1;
  const matches = await em
    .getKysely<Tables>()
    .selectFrom('user_search_terms')
    .select(['user_id', 'user_created_at_ms'])
    .where('app_id', '=', app.id)
    .where('term', '>=', first)
    .where('term', '<', end)
    .orderBy('term')
    .limit(MAX_MATCHES)
    .execute();
  return newest(matches);
}

async function matchIdentifiers(
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
  const matches: (Match | undefined)[] = [];
  for (const [type, values] of subjects) {
    const keys = [...new Set(values.map(lookupKey))];
    for (let at = 0; at < keys.length; at += MAX_VALUES) {
      matches.push(await matchSubjects(context, type, keys.slice(at, at + MAX_VALUES)));
    }
  }
  return newest(matches)?.user_id;
}

function matchSubjects(
  { app, em }: UserContext,
  type: string,
  subjects: readonly string[],
): Promise<Match | undefined> {
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

function newest(matches: readonly (Match | undefined)[]): Match | undefined {
  return matches
    .filter((match) => match !== undefined)
    .reduce<Match | undefined>(
      (best, match) => (best === undefined || isNewer(match, best) ? match : best),
      undefined,
    );
}

function isNewer(left: Match, right: Match): boolean {
  const later = left.user_created_at_ms - right.user_created_at_ms;
  return later > 0 || (later === 0 && left.user_id > right.user_id);
}
