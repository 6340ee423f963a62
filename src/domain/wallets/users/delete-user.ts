import type { Kysely } from 'kysely';
import type { OperationContext } from '../../../operation-context.ts';
import { findUserForUpdate } from '../../access/user-records/find-user.ts';
import type { UserRow } from '../../access/user-records/user-row.ts';
import { recordEvent } from '../../base/events/record-event.ts';
import type { Tables } from '../../tables.ts';
import { removeSearchTerms } from './store-accounts.ts';
import { userView } from './user-view.ts';

// HOT: users are looked up and searched by prepared queries (bench `users`), so every write to them goes through
// Kysely.

/**
 * Deletes a user, frees the linked accounts and revokes the user's keys, sessions and devices. The wallets stay; their owner
 * becomes a key quorum that can no longer be satisfied.
 *
 * @throws ApiError not_found
 */
export async function deleteUser(context: OperationContext, userId: string): Promise<void> {
  const user = await findUserForUpdate(context, userId);
  await removeSearchTerms(
    context,
    user.linkedAccounts.map((account) => account.id),
  );
  const database = context.em.getKysely<Tables>();
  await database.deleteFrom('linked_accounts').where('user_id', '=', user.row.id).execute();
  await removeUser(context, user.row);
  await recordEvent(context, {
    appId: context.app.id,
    type: 'user.deleted',
    payload: { user: userView(user) },
  });
}

/** Removes a user whose accounts are gone, with keys, sessions and devices. */
export async function removeUser(
  { app, em, nowMs }: Pick<OperationContext, 'app' | 'em' | 'nowMs'>,
  { id, created_at_ms }: Pick<UserRow, 'id' | 'created_at_ms'>,
): Promise<void> {
  const database = em.getKysely<Tables>();
  await database.deleteFrom('user_keys').where('user_id', '=', id).execute();
  await database.deleteFrom('user_sessions').where('user_id', '=', id).execute();
  await deleteGrants(database, id);
  // Payouts in progress have stored what they need.
  await database.deleteFrom('fiat_customers').where('entity_id', '=', id).execute();
  await database.deleteFrom('external_fiat_accounts').where('entity_id', '=', id).execute();
  await database.deleteFrom('card_customers').where('user_id', '=', id).execute();
  // A job cancels them at their issuers.
  await database
    .updateTable('cards')
    .set({ status: 'canceled', next_check_at_ms: nowMs })
    .where('user_id', '=', id)
    .where('status', '<>', 'canceled')
    .execute();
  await database.deleteFrom('users').where('id', '=', id).execute();
  await database.insertInto('deleted_users').values({ id, app_id: app.id, created_at_ms }).execute();
}

/** What the user's devices hold: waiting codes, grants and their refresh tokens. */
async function deleteGrants(database: Kysely<Tables>, userId: string): Promise<void> {
  await database
    .deleteFrom('oauth_refresh_tokens')
    .where('grant_id', 'in', (eb) => eb.selectFrom('oauth_grants').select('id').where('user_id', '=', userId))
    .execute();
  await database.deleteFrom('oauth_grants').where('user_id', '=', userId).execute();
  await database.deleteFrom('oauth_device_codes').where('user_id', '=', userId).execute();
}
