import type { CreateUserRequest } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import type { StoredUser } from '../../access/user-records/find-user.ts';
import type { UserRow } from '../../access/user-records/user-row.ts';
import { recordEvent } from '../../base/events/record-event.ts';
import type { Tables } from '../../tables.ts';
import { encodeCustomMetadata } from './custom-metadata.ts';
import { encodeLinkedAccount, type LinkedAccountRecord } from './linked-account-kinds.ts';
import { queueForAccounts, requireOneOfEachKind, storeAccounts } from './store-accounts.ts';
import { userView } from './user-view.ts';
import { addWallets, announceWallets, type PreparedWallets, prepareWallets } from './user-wallets.ts';

// HOT: users are looked up and searched by prepared queries (bench `users`), so every write to them goes through
// Kysely.

/** A validated user to create, with everything checked that needs no database. */
export interface PreparedUser {
  readonly accounts: readonly LinkedAccountRecord[];
  readonly customMetadata: string | null;
  readonly wallets: PreparedWallets;
}

/**
 * Creates a user with linked accounts and wallets that the user owns.
 *
 * @throws ApiError invalid_data; cannot_link_more_of_type; linked_to_another_user when another user of the app has
 * one of the accounts; resource_conflict when the external id of a wallet is taken.
 */
export async function createUser(context: OperationContext, input: CreateUserRequest): Promise<StoredUser> {
  const prepared = await prepareUser(context, input);
  await queueForAccounts(context, prepared.accounts);
  return storeUser(context, prepared);
}

/**
 * Validates what needs no database and draws the wallet keys.
 *
 * @throws ApiError invalid_data, cannot_link_more_of_type
 */
export async function prepareUser(
  context: OperationContext,
  input: CreateUserRequest,
): Promise<PreparedUser> {
  const accounts = input.linked_accounts.map((account, index) =>
    encodeLinkedAccount(account, `/linked_accounts/${index}`),
  );
  requireOneOfEachKind(accounts, '/linked_accounts');
  const customMetadata = encodeCustomMetadata(input.custom_metadata);
  return { accounts, customMetadata, wallets: await prepareWallets(context, input.wallets) };
}

/**
 * Stores a prepared user and records the events.
 *
 * @throws ApiError invalid_data, linked_to_another_user, resource_conflict
 */
export async function storeUser(context: OperationContext, prepared: PreparedUser): Promise<StoredUser> {
  const row: UserRow = {
    id: context.ids.userDid(),
    app_id: context.app.id,
    custom_metadata: prepared.customMetadata,
    has_accepted_terms: 0,
    is_guest: 0,
    mfa_methods: '[]',
    frozen_at_ms: null,
    created_at_ms: context.nowMs,
  };
  await context.em.getKysely<Tables>().insertInto('users').values(row).execute();
  const linkedAccounts = await storeAccounts(context, row, { linked: [], accounts: prepared.accounts });
  const withWallets = await addWallets(context, { row, linkedAccounts }, prepared.wallets);
  await recordEvent(context, {
    appId: context.app.id,
    type: 'user.created',
    payload: { user: userView(withWallets.user) },
  });
  await announceWallets(context, withWallets);
  return withWallets.user;
}
