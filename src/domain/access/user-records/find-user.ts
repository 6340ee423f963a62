import type { Kysely } from 'kysely';
import { invalidField, notFound } from '../../../errors.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { lookupKey } from '../../base/lookup-keys/lookup-key.ts';
import { prepareQuery } from '../../prepared-query.ts';
import type { Tables } from '../../tables.ts';
import {
  linkedAccountColumns,
  type StoredAccount,
  type StoredUser,
  type UserRow,
  userColumns,
} from './user.entity.ts';

// HOT: looks up users with their accounts (bench `users`).

export type UserContext = Pick<OperationContext, 'app' | 'em'>;

const DID_PREFIX = 'did:service:';
const qualifiedUserColumns = userColumns.map((column) => `users.${column}` as const);

/** The key of a linked account, which is unique within the app. */
export interface AccountKey {
  readonly type: string;
  /** The account in canonical form, such as the lower-case e-mail address, the phone number or the custom user id. */
  readonly subject: string;
}

/**
 * Finds a user of the app.
 *
 * @param id with or without the prefix `did:service:`.
 * @throws ApiError not_found
 */
export async function findUser(context: UserContext, id: string): Promise<StoredUser> {
  const user = await getUser(context, id);
  if (user === undefined) throw notFound('User');
  return user;
}

/** Returns a user of the app, or undefined. The prefix of the id is optional. */
export async function getUser(context: UserContext, id: string): Promise<StoredUser | undefined> {
  const did = didOf(id);
  if (did === undefined) return undefined;
  const {
    rows: [row],
  } = await selectById(context.em, { appId: context.app.id, id: did });
  return row && userWithAccounts(context, row);
}

/**
 * Finds a user and locks the row until the transaction ends.
 *
 * @throws ApiError not_found
 */
export async function findUserForUpdate(context: UserContext, id: string): Promise<StoredUser> {
  const did = didOf(id);
  const row =
    did === undefined
      ? undefined
      : await selectUser(context.em.getKysely<Tables>(), { appId: context.app.id, id: did })
          .forUpdate()
          .executeTakeFirst();
  if (row === undefined) throw notFound('User');
  return userWithAccounts(context, row);
}

/**
 * Locks a user against deletion and freezing until the transaction ends, for callers that store something which must
 * not outlive the user. Returns whether the user is frozen.
 *
 * @throws ApiError not_found
 */
export async function lockUser({ app, em }: UserContext, id: string): Promise<{ isFrozen: boolean }> {
  const row = await em
    .getKysely<Tables>()
    .selectFrom('users')
    .select('frozen_at_ms')
    .where('id', '=', lookupKey(id))
    .where('app_id', '=', app.id)
    .forKeyShare()
    .executeTakeFirst();
  if (row === undefined) throw notFound('User');
  return { isFrozen: row.frozen_at_ms !== null };
}

/** Returns the user of the app to whom an account is linked, or undefined. */
export async function getUserByAccount(
  context: UserContext,
  { type, subject }: AccountKey,
): Promise<StoredUser | undefined> {
  const row = await context.em
    .getKysely<Tables>()
    .selectFrom('linked_accounts')
    .innerJoin('users', 'users.id', 'linked_accounts.user_id')
    .select(qualifiedUserColumns)
    .where('linked_accounts.app_id', '=', context.app.id)
    .where('type', '=', type)
    .where('subject', '=', lookupKey(subject))
    .executeTakeFirst();
  return row && userWithAccounts(context, row);
}

/**
 * Finds the user of the app to whom an account is linked.
 *
 * @throws ApiError not_found
 */
export async function findUserByAccount(context: UserContext, key: AccountKey): Promise<StoredUser> {
  const user = await getUserByAccount(context, key);
  if (user === undefined) throw notFound('User');
  return user;
}

/**
 * Finds the app's user with a public name at a provider. A name can move from one person to another. If several users
 * have had the name, returns the user whose account was verified most recently.
 *
 * @param username is matched without regard to letter case.
 * @throws ApiError not_found
 */
export async function findUserByUsername(
  context: UserContext,
  { type, username }: { readonly type: string; readonly username: string },
): Promise<StoredUser> {
  const row = await context.em
    .getKysely<Tables>()
    .selectFrom('linked_accounts')
    .innerJoin('users', 'users.id', 'linked_accounts.user_id')
    .select(qualifiedUserColumns)
    .where('linked_accounts.app_id', '=', context.app.id)
    .where('type', '=', type)
    .where('username', '=', lookupKey(username.toLowerCase()))
    .orderBy('latest_verified_at_ms', 'desc')
    .orderBy('linked_accounts.id', 'desc')
    .limit(1)
    .executeTakeFirst();
  if (row === undefined) throw notFound('User');
  return userWithAccounts(context, row);
}

/** The user whom a linked account logs in. */
export interface LoginAccount {
  readonly userId: string;
  /** The time from which the account can be used, in Unix ms. Undefined if it can be used now. */
  readonly waitsUntilMs: number | undefined;
}

/** Returns the user of the app whom an account logs in; undefined if the account is not linked. */
export async function getLogin(
  context: UserContext & Pick<OperationContext, 'nowMs'>,
  { type, subject }: AccountKey,
): Promise<LoginAccount | undefined> {
  const row = await context.em
    .getKysely<Tables>()
    .selectFrom('linked_accounts')
    .select(['user_id', 'usable_at_ms'])
    .where('app_id', '=', context.app.id)
    .where('type', '=', type)
    .where('subject', '=', lookupKey(subject))
    .executeTakeFirst();
  if (row === undefined) return undefined;
  const { user_id: userId, usable_at_ms: usableAtMs } = row;
  return {
    userId,
    waitsUntilMs: usableAtMs === null || usableAtMs <= context.nowMs ? undefined : usableAtMs,
  };
}

/**
 * Checks that users named in a body exist in the app.
 *
 * @param pointer JSON pointer to the field that names them.
 * @throws ApiError invalid_data
 */
export async function requireUsers(
  context: UserContext,
  ids: readonly string[],
  pointer: string,
): Promise<void> {
  const distinct = [...new Set(ids)];
  if (distinct.length === 0) return;
  const rows = await context.em
    .getKysely<Tables>()
    .selectFrom('users')
    .select('id')
    .where('id', 'in', distinct.map(lookupKey))
    .where('app_id', '=', context.app.id)
    .execute();
  const missing = distinct.find((id) => !rows.some((row) => row.id === id));
  if (missing !== undefined) throw invalidField(pointer, `no user \`${missing}\` in this app`);
}

/** Reads the linked accounts of users with one query. Returns the users in the order of the rows. */
export async function usersWithAccounts(
  context: UserContext,
  rows: readonly UserRow[],
): Promise<StoredUser[]> {
  const accounts = await readAccounts(
    context,
    rows.map((row) => row.id),
  );
  const byUser = Map.groupBy(accounts, (account) => account.user_id);
  return rows.map((row) => ({ row, linkedAccounts: byUser.get(row.id) ?? [] }));
}

async function userWithAccounts(context: UserContext, row: UserRow): Promise<StoredUser> {
  return { row, linkedAccounts: await readAccounts(context, [row.id]) };
}

/** Converts a user id to its stored form; undefined when the string cannot be a user id. */
export function didOf(id: string): string | undefined {
  const bare = id.startsWith(DID_PREFIX) ? id.slice(DID_PREFIX.length) : id;
  return /^[a-z0-9]{1,64}$/.test(bare) ? DID_PREFIX + bare : undefined;
}

interface UserKey {
  readonly appId: string;
  readonly id: string;
}

function selectUser(database: Kysely<Tables>, { appId, id }: UserKey) {
  return database.selectFrom('users').select(userColumns).where('id', '=', id).where('app_id', '=', appId);
}

// Both statements run for each request with a user token, so they are prepared.
const selectById = prepareQuery<UserKey, UserRow>(selectUser);
const selectOwnAccounts = prepareQuery<{ userId: string }, AccountWithWallet>((database, { userId }) =>
  selectAccounts(database).where('user_id', '=', userId),
);

type AccountWithWallet = Awaited<ReturnType<ReturnType<typeof selectAccounts>['execute']>>[number];

function selectAccounts(database: Kysely<Tables>) {
  return database
    .selectFrom('linked_accounts')
    .leftJoin('wallets', 'wallets.id', 'linked_accounts.wallet_id')
    .select(linkedAccountColumns.map((column) => `linked_accounts.${column}` as const))
    .select([
      'wallets.address',
      'wallets.chain_type',
      'wallets.public_key',
      'wallets.additional_signers',
      'wallets.imported_at_ms',
    ])
    .orderBy('linked_accounts.user_id')
    .orderBy('position');
}

async function readAccounts({ em }: UserContext, userIds: readonly string[]): Promise<StoredAccount[]> {
  const [first = ''] = userIds;
  if (userIds.length === 0) return [];
  const rows =
    userIds.length === 1
      ? (await selectOwnAccounts(em, { userId: first })).rows
      : await selectAccounts(em.getKysely<Tables>())
          .where('user_id', 'in', [...userIds])
          .execute();
  return rows.map(({ address, chain_type, public_key, additional_signers, imported_at_ms, ...account }) => ({
    ...account,
    wallet:
      address === null || chain_type === null || additional_signers === null
        ? null
        : { address, chain_type, public_key, additional_signers, imported_at_ms },
  }));
}
