import { type OperationId, operations } from '../../../generated/operations.ts';
import type { IntentResponse, IntentType } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { readAuthorizationDetails } from './authorization-details.ts';
import type { IntentRow } from './intent-row.ts';
import { statusAt } from './intent-state.ts';
import { type CurrentResource, readResources } from './read-resources.ts';

type ViewContext = Pick<OperationContext, 'app' | 'em' | 'nowMs'>;

/** One intent as the wire has it. */
export async function readIntentView(context: ViewContext, intent: IntentRow): Promise<IntentResponse> {
  const [view] = await readIntentViews(context, [intent]);
  return view!;
}

/**
 * Intents as the wire has them, in the same order. Who can sign a pending one is told as the key quorums stand now; of
 * all others it is told how it was in the end.
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
  // The contract has a shape for each type; what differs between them is in the row.
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

/** What intents and the events about them have in common. */
export function intentSummary(intent: IntentRow) {
  return {
    intent_id: intent.id,
    intent_type: intent.intent_type as IntentType,
    status: intent.status,
    created_at: intent.created_at_ms,
    // CHOICE: of a user the id; a user has accounts and no one name.
    created_by_display_name: intent.created_by_id ?? 'API',
    ...(intent.created_by_id === null ? {} : { created_by_id: intent.created_by_id }),
    expires_at: intent.expires_at_ms,
  };
}
