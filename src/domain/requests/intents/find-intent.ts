import { ApiError, notFound } from '../../../errors.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { membershipsOf } from '../../access/key-quorums/list-memberships.ts';
import { lookupKey } from '../../base/lookup-keys/lookup-key.ts';
import type { Tables } from '../../tables.ts';
import { type IntentRow, intentColumns } from './intent-row.ts';
import { statusAt } from './intent-state.ts';

// HOT: changes of resources dismiss intents in one statement, so every write to `intents` goes through Kysely. No
// bench case covers it.

type FindContext = Pick<OperationContext, 'app' | 'em' | 'proof'>;

/**
 * The app's intents that the caller may see: all with the app secret; with a user token, those the user created or
 * can sign.
 */
export function visibleIntents({ app, em, proof: { userId } }: FindContext) {
  const database = em.getKysely<Tables>();
  const ofApp = database.selectFrom('intents').select(intentColumns).where('app_id', '=', app.id);
  if (userId === undefined) return ofApp;
  return ofApp.where(({ eb, or }) =>
    or([
      eb('created_by_id', '=', userId),
      eb(
        'id',
        'in',
        database
          .selectFrom('intent_parties')
          .select('intent_id')
          .where('key_quorum_id', 'in', membershipsOf(database, { kind: 'user', member: userId })),
      ),
    ]),
  );
}

/**
 * An intent that the caller may see.
 *
 * @throws ApiError not_found
 */
export async function findIntent(context: FindContext, id: string): Promise<IntentRow> {
  const row = await visibleIntents(context).where('id', '=', lookupKey(id)).executeTakeFirst();
  if (row === undefined) throw notFound('Intent');
  return row;
}

/** The current state of an intent that the caller has already been allowed to see. */
export function reloadIntent({ em }: Pick<OperationContext, 'em'>, id: string): Promise<IntentRow> {
  return em
    .getKysely<Tables>()
    .selectFrom('intents')
    .select(intentColumns)
    .where('id', '=', id)
    .executeTakeFirstOrThrow();
}

/**
 * A pending intent, locked until the transaction ends.
 *
 * @throws ApiError not_found, invalid_state
 */
export async function findPendingForUpdate(
  context: FindContext & Pick<OperationContext, 'nowMs'>,
  id: string,
): Promise<IntentRow> {
  await context.em
    .getKysely<Tables>()
    .selectFrom('intents')
    .select('id')
    .where('id', '=', lookupKey(id))
    .forUpdate()
    .execute();
  const row = await findIntent(context, id);
  const status = statusAt(row, context.nowMs);
  if (status !== 'pending') {
    throw new ApiError('invalid_state', `the intent cannot be authorized or rejected: it is ${status}`);
  }
  return row;
}
