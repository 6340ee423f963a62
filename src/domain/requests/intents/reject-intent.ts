import assert from 'node:assert/strict';
import type { IntentResponse } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { recordEvent } from '../../base/events/events.ts';
import { findPendingForUpdate, moveIntent, reloadIntent } from './find-intent.ts';
import { intentSummary, readIntentView } from './intent-view.ts';

/**
 * Rejects a pending intent. This is final. Every caller who may see the intent may reject it.
 *
 * @throws ApiError not_found; invalid_state for an intent that is not pending.
 */
export async function rejectIntent(context: OperationContext, id: string): Promise<IntentResponse> {
  const intent = await findPendingForUpdate(context, id);
  const outcome = { ended_at_ms: context.nowMs };
  const isMine = await moveIntent(context, intent.id, { from: 'pending', to: 'rejected', outcome });
  assert(isMine, `intent ${id} is locked, yet its status has changed`);
  const rejected = await reloadIntent(context, intent.id);
  await recordEvent(context, {
    appId: context.app.id,
    type: 'intent.rejected',
    payload: {
      ...intentSummary(rejected),
      rejected_at: context.nowMs,
    },
  });
  return readIntentView(context, rejected);
}
