import type { Kysely } from 'kysely';
import { ApiError, invalidField } from '../../../errors.ts';
import type {
  CreateUserRequest,
  MfaMethod,
  UserBatchCreateInputUser,
  UserBatchCreateResult,
  WalletCreationInput,
} from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { findUserForUpdate } from '../../access/user-records/find-user.ts';
import {
  DeletedUserEntity,
  LinkedAccountEntity,
  type StoredUser,
  UserEntity,
  type UserRow,
} from '../../access/user-records/user.entity.ts';
import { recordEvent } from '../../base/events/events.ts';
import { inSavepoint } from '../../savepoint.ts';
import type { Tables } from '../../tables.ts';
import { encodeLinkedAccount, type LinkedAccountRecord } from './linked-account-kinds.ts';
import {
  queueForAccounts,
  removeSearchTerms,
  requireOneOfEachKind,
  storeAccounts,
} from './store-accounts.ts';
import { encodeCustomMetadata, userView } from './user-view.ts';
import { addWallets, announceWallets, type PlannedWallets, planWallets } from './user-wallets.ts';

// KYSELY: deletes and changes rows of tables of higher layers, whose entities cannot be imported here.

/** A user to create, after all checks that need no database. */
interface PlannedUser {
  readonly accounts: readonly LinkedAccountRecord[];
  readonly customMetadata: string | null;
  readonly wallets: PlannedWallets;
}

/**
 * Creates a user with linked accounts and wallets that the user owns.
 *
 * @throws ApiError invalid_data; cannot_link_more_of_type; linked_to_another_user when another user of the app has
 * one of the accounts; resource_conflict when the external id of a wallet is taken.
 */
export async function createUser(context: OperationContext, input: CreateUserRequest): Promise<StoredUser> {
  const prepared = await planUser(context, input);
  await queueForAccounts(context, prepared.accounts);
  return storeUser(context, prepared);
}

/**
 * Makes all checks that need no database, and creates the wallet keys.
 *
 * @throws ApiError invalid_data, cannot_link_more_of_type
 */
async function planUser(context: OperationContext, input: CreateUserRequest): Promise<PlannedUser> {
  const accounts = input.linked_accounts.map((account, index) =>
    encodeLinkedAccount(account, `/linked_accounts/${index}`),
  );
  requireOneOfEachKind(accounts, '/linked_accounts');
  const customMetadata = encodeCustomMetadata(input.custom_metadata);
  return { accounts, customMetadata, wallets: await planWallets(context, input.wallets) };
}

/**
 * Stores a planned user with accounts and wallets, and records the events.
 *
 * @throws ApiError invalid_data, linked_to_another_user, resource_conflict
 */
async function storeUser(context: OperationContext, prepared: PlannedUser): Promise<StoredUser> {
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

const flags = [
  'create_embedded_wallet',
  'create_ethereum_wallet',
  'create_n_embedded_wallets',
  'create_n_ethereum_wallets',
  'create_ethereum_smart_wallet',
  'create_solana_wallet',
] as const satisfies readonly (keyof UserBatchCreateInputUser)[];

/**
 * Creates up to 20 users independently: the refusal of one user does not affect the others.
 *
 * @returns one entry for each input, in order.
 * @throws ApiError invalid_data when flags of an entry contradict each other; then no user is created.
 */
export async function batchCreateUsers(
  context: OperationContext,
  inputs: readonly UserBatchCreateInputUser[],
): Promise<UserBatchCreateResult[]> {
  const wallets = inputs.map((input, index) => walletsOf(input, `/users/${index}`));
  const prepared: (PlannedUser | ApiError)[] = [];
  const results: UserBatchCreateResult[] = [];
  // Create all keys before the first statement, user by user, so that other requests run in between.
  for (const [index, { linked_accounts, custom_metadata }] of inputs.entries()) {
    const input = { linked_accounts, custom_metadata, wallets: wallets[index] };
    prepared.push(await outcomeOf(() => planUser(context, input)));
  }
  await queueForAccounts(
    context,
    prepared.flatMap((outcome) => (outcome instanceof ApiError ? [] : outcome.accounts)),
  );
  for (const [index, outcome] of prepared.entries()) {
    results.push({ index, ...(await storeOne(context, outcome)) });
  }
  return results;
}

/** Returns the result of `work`, or the refusal that it throws. Rethrows internal errors. */
async function outcomeOf<T>(work: () => Promise<T>): Promise<T | ApiError> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ApiError && error.status < 500) return error;
    throw error;
  }
}

async function storeOne(context: OperationContext, prepared: PlannedUser | ApiError) {
  const outcome =
    prepared instanceof ApiError
      ? prepared
      : await outcomeOf(() =>
          // A refusal rolls back only this user.
          inSavepoint(context, (em, notes) => storeUser({ ...context, em, notes }, prepared)),
        );
  if (!(outcome instanceof ApiError)) return { success: true as const, id: outcome.row.id };
  const { error, code } = outcome.toBody();
  return { success: false as const, error, ...(code === undefined ? {} : { code }) };
}

/**
 * Returns the wallets that an entry requests, by `wallets` or by the older flags.
 *
 * CHOICE: contradicting flags make the whole request invalid; they are not the outcome of one user.
 *
 * @throws ApiError invalid_data
 */
function walletsOf(input: UserBatchCreateInputUser, pointer: string): WalletCreationInput[] {
  if (input.wallets !== undefined) {
    const flag = flags.find((name) => input[name] !== undefined);
    if (flag !== undefined) throw invalidField(`${pointer}/${flag}`, 'not allowed together with `wallets`');
    return input.wallets;
  }
  const isOldest =
    input.create_embedded_wallet !== undefined || input.create_n_embedded_wallets !== undefined;
  const isNewer = input.create_ethereum_wallet !== undefined || input.create_n_ethereum_wallets !== undefined;
  if (isOldest && isNewer) {
    const flag =
      input.create_embedded_wallet === undefined ? 'create_n_embedded_wallets' : 'create_embedded_wallet';
    throw invalidField(`${pointer}/${flag}`, 'not allowed together with the flag that replaces it');
  }
  const wantsOne = input.create_embedded_wallet ?? input.create_ethereum_wallet ?? false;
  const count = input.create_n_embedded_wallets ?? input.create_n_ethereum_wallets ?? (wantsOne ? 1 : 0);
  const wantsSmart = input.create_ethereum_smart_wallet ?? false;
  if (wantsSmart && count === 0) {
    throw invalidField(`${pointer}/create_ethereum_smart_wallet`, 'needs `create_ethereum_wallet`');
  }
  const ethereum = Array.from({ length: count }, (_, index) => ({
    chain_type: 'ethereum' as const,
    ...(wantsSmart && index === 0 ? { create_smart_wallet: true } : {}),
  }));
  return [...ethereum, ...(input.create_solana_wallet ? [{ chain_type: 'solana' as const }] : [])];
}

/**
 * Deletes a user, releases the linked accounts and revokes the user's keys, sessions and devices. The wallets stay, but
 * nobody can satisfy the key quorum of their owner.
 *
 * @throws ApiError not_found
 */
export async function deleteUser(context: OperationContext, userId: string): Promise<void> {
  const user = await findUserForUpdate(context, userId);
  await removeSearchTerms(
    context,
    user.linkedAccounts.map((account) => account.id),
  );
  await context.em.nativeDelete(LinkedAccountEntity, { userId: user.row.id });
  await removeUser(context, user.row);
  await recordEvent(context, {
    appId: context.app.id,
    type: 'user.deleted',
    payload: { user: userView(user) },
  });
}

/**
 * Deletes the row of a user, together with keys, sessions, devices and registrations with providers, and cancels the
 * user's cards. The caller has already removed the accounts.
 */
export async function removeUser(
  { app, em, nowMs }: Pick<OperationContext, 'app' | 'em' | 'nowMs'>,
  { id, created_at_ms }: Pick<UserRow, 'id' | 'created_at_ms'>,
): Promise<void> {
  const database = em.getKysely<Tables>();
  await database.deleteFrom('user_keys').where('user_id', '=', id).execute();
  await database.deleteFrom('user_sessions').where('user_id', '=', id).execute();
  await deleteGrants(database, id);
  // Payouts in progress have already stored all that they need of the customer.
  await database.deleteFrom('fiat_customers').where('entity_id', '=', id).execute();
  await database.deleteFrom('external_fiat_accounts').where('entity_id', '=', id).execute();
  await database.deleteFrom('card_customers').where('user_id', '=', id).execute();
  // A job cancels the cards at their issuers.
  await database
    .updateTable('cards')
    .set({ status: 'canceled', next_check_at_ms: nowMs })
    .where('user_id', '=', id)
    .where('status', '<>', 'canceled')
    .execute();
  await em.nativeDelete(UserEntity, { id });
  await em.insert(DeletedUserEntity, { id, appId: app.id, createdAtMs: created_at_ms });
}

/**
 * Deletes the records of the user's devices: the codes on which the user decided, the grants and their refresh tokens.
 */
async function deleteGrants(database: Kysely<Tables>, userId: string): Promise<void> {
  await database
    .deleteFrom('oauth_refresh_tokens')
    .where('grant_id', 'in', (eb) => eb.selectFrom('oauth_grants').select('id').where('user_id', '=', userId))
    .execute();
  await database.deleteFrom('oauth_grants').where('user_id', '=', userId).execute();
  await database.deleteFrom('oauth_device_codes').where('user_id', '=', userId).execute();
}

/** The state that users change on the app's own pages, and whether the app has frozen the user. */
interface UserState {
  /** The user's new MFA methods. Methods that the user already has keep their time. */
  readonly mfaMethods?: readonly MfaMethod[] | undefined;
  readonly hasAcceptedTerms?: boolean | undefined;
  readonly isGuest?: boolean | undefined;
  readonly isFrozen?: boolean | undefined;
}

/**
 * Sets a user's state; omitted members stay unchanged.
 *
 * @throws ApiError not_found
 */
export async function changeUserState(
  context: Pick<OperationContext, 'app' | 'em' | 'ids' | 'notes' | 'nowMs'>,
  userId: string,
  state: UserState,
): Promise<StoredUser> {
  const { row, linkedAccounts } = await findUserForUpdate(context, userId);
  const known: { type: MfaMethod; verified_at: number }[] = JSON.parse(row.mfa_methods);
  const wanted = [...new Set(state.mfaMethods ?? known.map(({ type }) => type))];
  const methods = wanted.map(
    (type) =>
      known.find((method) => method.type === type) ?? { type, verified_at: Math.floor(context.nowMs / 1000) },
  );
  const change = {
    mfa_methods: JSON.stringify(methods),
    has_accepted_terms: flag(state.hasAcceptedTerms, row.has_accepted_terms),
    is_guest: flag(state.isGuest, row.is_guest),
    frozen_at_ms:
      state.isFrozen === undefined
        ? row.frozen_at_ms
        : state.isFrozen
          ? (row.frozen_at_ms ?? context.nowMs)
          : null,
  };
  await context.em.getKysely<Tables>().updateTable('users').set(change).where('id', '=', row.id).execute();
  if (change.frozen_at_ms !== row.frozen_at_ms) await announceToIssuers(context, row.id);
  if (change.frozen_at_ms !== null && row.frozen_at_ms === null) await endSessions(context, row.id);
  for (const method of wanted.filter((type) => !known.some((old) => old.type === type))) {
    await recordEvent(context, {
      appId: context.app.id,
      type: 'mfa.enabled',
      payload: { user_id: row.id, method },
    });
  }
  for (const { type: method } of known.filter(({ type }) => !wanted.includes(type))) {
    await recordEvent(context, {
      appId: context.app.id,
      type: 'mfa.disabled',
      payload: { user_id: row.id, method },
    });
  }
  return { row: { ...row, ...change }, linkedAccounts };
}

/**
 * Ends a user's sessions permanently, together with the keys that were issued for them. A user who is unfrozen must log
 * in again.
 *
 * CHOICE: a device that the user has approved, but that has no tokens yet, gets none. Access tokens stay valid for up
 * to an hour, but no key is issued for them, and they approve no device.
 */
async function endSessions(
  { em, nowMs }: Pick<OperationContext, 'em' | 'nowMs'>,
  userId: string,
): Promise<void> {
  const database = em.getKysely<Tables>();
  await database.deleteFrom('user_keys').where('user_id', '=', userId).execute();
  for (const sessions of ['user_sessions', 'oauth_grants'] as const) {
    await database
      .updateTable(sessions)
      .set({ revoked_at_ms: nowMs })
      .where('user_id', '=', userId)
      .where('revoked_at_ms', 'is', null)
      .execute();
  }
  await database
    .updateTable('oauth_device_codes')
    .set({ status: 'denied' })
    .where('user_id', '=', userId)
    .where('status', '=', 'approved')
    .execute();
}

/**
 * Makes the cards of the user due, so that a job reports the freeze, or its end, to their issuers. Cards of a frozen
 * user cannot pay.
 */
async function announceToIssuers(
  { em, nowMs }: Pick<OperationContext, 'em' | 'nowMs'>,
  userId: string,
): Promise<void> {
  await em
    .getKysely<Tables>()
    .updateTable('cards')
    .set({ next_check_at_ms: nowMs })
    .where('user_id', '=', userId)
    .where('status', '<>', 'canceled')
    .execute();
}

/** Returns the stored form of a boolean, which is 0 or 1; the stored value if none is given. */
function flag(wanted: boolean | undefined, stored: number): number {
  return wanted === undefined ? stored : Number(wanted);
}
