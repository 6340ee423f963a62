import { readIntentViews } from '../../domain/requests/intents/intent-view.ts';
import { listIntents } from '../../domain/requests/intents/list-intents.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'listIntents'> = async ({ query }, context) => {
  const filter = {
    status: query.status,
    intentType: query.intent_type,
    resourceId: query.resource_id,
    createdById: query.created_by_id,
    pendingMemberId: query.pending_member_id,
    currentUserHasSigned:
      query.current_user_has_signed === undefined ? undefined : query.current_user_has_signed === 'true',
  };
  const page = { order: query.sort_by, cursor: query.cursor, limit: query.limit };
  const { intents, nextCursor } = await listIntents(context, filter, page);
  return { data: await readIntentViews(context, intents), next_cursor: nextCursor };
};
