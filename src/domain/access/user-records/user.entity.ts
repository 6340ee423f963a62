import { defineEntity, p } from '@mikro-orm/core';
import type { Selectable } from 'kysely';
import type { Tables } from '../../tables.ts';

/**
 * The position of a deleted user in the list of users. A caller who deletes users page by page can continue from the
 * cursor of a deleted user. Nothing else of the user is kept.
 */
export const DeletedUserEntity = defineEntity({
  name: 'DeletedUser',
  tableName: 'deleted_users',
  properties: {
    id: p.text().primary(),
    appId: p.text(),
    createdAtMs: p.bigint('number'),
  },
});

/** One identity of a user, such as an e-mail address, a phone number or a custom user id. */
export const LinkedAccountEntity = defineEntity({
  name: 'LinkedAccount',
  tableName: 'linked_accounts',
  properties: {
    id: p.text().primary(),
    appId: p.text(),
    userId: p.text(),
    /** The number of the account among the accounts that the user has ever linked. It increases with each link. */
    position: p.integer(),
    /** The `type` of the account in wire form. */
    type: p.text(),
    /**
     * The `lookupKey` of the identifier that is unique within the app and type, such as the lower-case address, the
     * number or the custom user id.
     */
    subject: p.text(),
    /** The `lookupKey` of the lower-case public name; null if accounts of this type have none. */
    username: p.text().strictNullable(),
    /**
     * The embedded wallet of the account, from which its address and keys are read. Null for accounts of other kinds.
     */
    walletId: p.text().strictNullable(),
    /** JSON object with the other members of the wire object. For an embedded wallet it is only `wallet_index`. */
    details: p.text().default('{}'),
    verifiedAtMs: p.bigint('number').strictNullable(),
    firstVerifiedAtMs: p.bigint('number').strictNullable(),
    latestVerifiedAtMs: p.bigint('number').strictNullable(),
    /**
     * The time from which the account can be used to log in, if it was linked without a signature by the user's key.
     * Null if it can be used immediately.
     */
    usableAtMs: p.bigint('number').strictNullable(),
  },
  indexes: [
    { name: 'linked_accounts_by_user', properties: ['userId', 'position'] },
    {
      name: 'linked_accounts_by_username',
      properties: ['appId', 'type', 'username', 'latestVerifiedAtMs', 'id'],
      where: 'username is not null',
    },
  ],
  uniques: [{ name: 'linked_accounts_subject', properties: ['appId', 'type', 'subject'] }],
});

/** An end user of an app. */
export const UserEntity = defineEntity({
  name: 'User',
  tableName: 'users',
  properties: {
    /** `did:service:` and a cuid. */
    id: p.text().primary(),
    appId: p.text(),
    /** JSON object; null when the user has no metadata. */
    customMetadata: p.text().strictNullable(),
    /** 0 or 1. */
    hasAcceptedTerms: p.integer().default(0),
    /** 0 or 1. */
    isGuest: p.integer().default(0),
    /** JSON array of `{type, verified_at}` in wire form. */
    mfaMethods: p.text().default('[]'),
    /** When the user was frozen; null if the user is not frozen, and then omitted from responses. */
    frozenAtMs: p.bigint('number').strictNullable(),
    createdAtMs: p.bigint('number'),
  },
  indexes: [{ name: 'users_by_age', properties: ['appId', 'createdAtMs', 'id'] }],
});

/** A row of `users` with the column names of the database. */
export type UserRow = Selectable<Tables['users']>;

/** A row of `linked_accounts` with the column names of the database. */
export type LinkedAccountRow = Selectable<Tables['linked_accounts']>;

/** The columns of an embedded wallet that its linked account shows. */
export type AccountWallet = Pick<
  Selectable<Tables['wallets']>,
  'address' | 'chain_type' | 'public_key' | 'additional_signers' | 'imported_at_ms'
>;

/** A linked account with its embedded wallet; `wallet` is null for accounts of other kinds. */
export interface StoredAccount extends LinkedAccountRow {
  readonly wallet: AccountWallet | null;
}

/** A user with all linked accounts, in the order in which they were linked. */
export interface StoredUser {
  readonly row: UserRow;
  readonly linkedAccounts: readonly StoredAccount[];
}

/** All columns of `users`, for reads of whole rows. */
export const userColumns = [
  'id',
  'app_id',
  'custom_metadata',
  'has_accepted_terms',
  'is_guest',
  'mfa_methods',
  'frozen_at_ms',
  'created_at_ms',
] as const satisfies readonly (keyof UserRow)[];

/** All columns of `linked_accounts`, for reads of whole rows. */
export const linkedAccountColumns = [
  'id',
  'app_id',
  'user_id',
  'position',
  'type',
  'subject',
  'username',
  'wallet_id',
  'details',
  'verified_at_ms',
  'first_verified_at_ms',
  'latest_verified_at_ms',
  'usable_at_ms',
] as const satisfies readonly (keyof LinkedAccountRow)[];

/** A string by which a user is found. The primary key is the covering index that the search reads. */
export const UserSearchTermEntity = defineEntity({
  name: 'UserSearchTerm',
  tableName: 'user_search_terms',
  properties: {
    appId: p.text().primary(),
    /** UTF-8 bytes of the lower-case text, which sort independently of the database's collation. */
    term: p.blob().primary(),
    userCreatedAtMs: p.bigint('number').primary(),
    userId: p.text().primary(),
    accountId: p.text().primary(),
  },
  indexes: [{ name: 'user_search_terms_by_account', properties: ['accountId'] }],
});
