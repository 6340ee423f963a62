import { type OperationId, operations } from '../../../generated/operations.ts';
import type { IntentResponse, IntentType } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { readAuthorizationDetails } from './authorization-details.ts';
import type { IntentRow } from './intent-row.ts';
import { statusAt } from './intent-state.ts';
import { type CurrentResource, readResources } from './read-resources.ts';

type ViewContext = Pick<OperationContext, 'app' | 'em' | 'nowMs'>;

/** One intent in wire form. */
export async function readIntentView(context: ViewContext, intent: IntentRow): Promise<IntentResponse> {
  const [view] = await readIntentViews(context, [intent]);
  return view!;
}

/**
 * Intents in wire form, in the same order. For pending intents, eligible signers reflect the current key quorums; for
 * all others, the key quorums at the time they ended.
 */
export async function readIntentViews(
  context: ViewContext,
  intents: readonly IntentRow[],
): Promise<IntentResponse[]> {
  const pending = intents.filter((intent) => statusAt(intent, context.nowMs) === 'pending');
  const details = await readAuthorizationDetails(
    context,
    pending.map(({ id }) => id),
  );
  const resourceOf = await readResources(context, intents);
  return intents.map((intent) =>
    intentView(intent, {
      nowMs: context.nowMs,
      details: details.get(intent.id) ?? JSON.parse(intent.authorization_details),
      resource: resourceOf(intent),
    }),
  );
}

function intentView(
  intent: IntentRow,
  { nowMs, details, resource }: { nowMs: number; details: unknown; resource: CurrentResource },
): IntentResponse {
  const status = statusAt(intent, nowMs);
  const isDone = status === 'executed' || status === 'failed';
  // The contract has a schema per intent type; the differences between them are all in the row.
  return {
    ...intentSummary(intent),
    status,
    resource_id: intent.resource_id,
    authorization_details: details,
    custom_expiry: intent.request_expiry_ms !== null,
    request_details: {
      method: operations[intent.operation_id as OperationId].method,
      url: intent.url,
      ...(intent.body === null ? {} : { body: JSON.parse(intent.body) }),
    },
    ...resource,
    ...(status === 'rejected' ? { rejected_at: intent.ended_at_ms } : {}),
    ...(status === 'dismissed'
      ? { dismissed_at: intent.ended_at_ms, dismissal_reason: intent.dismissal_reason }
      : {}),
    ...(isDone && intent.action_result !== null ? { action_result: JSON.parse(intent.action_result) } : {}),
  } as unknown as IntentResponse;
}

/** The fields that intents and their events share. */
export function intentSummary(intent: IntentRow) {
  return {
    intent_id: intent.id,
    intent_type: intent.intent_type as IntentType,
    status: intent.status,
    created_at: intent.created_at_ms,
    // CHOICE: for a user, the user id, because users have no single name.
    created_by_display_name: intent.created_by_id ?? 'API',
    ...(intent.created_by_id === null ? {} : { created_by_id: intent.created_by_id }),
    expires_at: intent.expires_at_ms,
  };
}
