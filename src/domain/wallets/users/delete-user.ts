import type { OperationContext } from '../../../operation-context.ts';
import { findUserForUpdate } from '../../access/user-records/find-user.ts';
import { recordEvent } from '../../base/events/record-event.ts';
import type { Tables } from '../../tables.ts';
import { removeSearchTerms } from './store-accounts.ts';
import { userView } from './user-view.ts';

// HOT: users are looked up and searched by prepared queries (bench `users`), so every write to them goes through
// Kysely.

/**
 * Deletes a user, frees the linked accounts and revokes the user's keys and sessions. The wallets stay; their owner
 * becomes a key quorum that can no longer be satisfied.
 *
 * @throws ApiError not_found
 */
export async function deleteUser(context: OperationContext, userId: string): Promise<void> {
  const user = await findUserForUpdate(context, userId);
  const { id, created_at_ms } = user.row;
  const database = context.em.getKysely<Tables>();
  await removeSearchTerms(
    context,
    user.linkedAccounts.map((account) => account.id),
  );
  await database.deleteFrom('linked_accounts').where('user_id', '=', id).execute();
  await database.deleteFrom('user_keys').where('user_id', '=', id).execute();
  await database.deleteFrom('user_sessions').where('user_id', '=', id).execute();
  await database.deleteFrom('users').where('id', '=', id).execute();
  await database.insertInto('deleted_users').values({ id, app_id: context.app.id, created_at_ms }).execute();
  await recordEvent(context, {
    appId: context.app.id,
    type: 'user.deleted',
    payload: { user: userView(user) },
  });
}
