import { ApiError, notFound } from '../../errors.ts';
import type { ControlContext, Handler } from '../control-plane.ts';
import type { PolicyTrace } from '../generated/schemas.ts';
import { policyTrace } from '../policy-trace.ts';
import { eventsOf } from '../requests/caused-events.ts';
import { requestDetails } from '../requests/request-view.ts';
import { requireLog } from '../requests/require-log.ts';

export const run: Handler<'getRequest'> = async ({ path }, context) => {
  const found = requireLog(context.requests).find(path.request_id);
  if (found === undefined) throw notFound('Request');
  const { answered } = found;
  const details = requestDetails(answered, context.redaction);
  return {
    ...details,
    events: await eventsOf(answered, details.events, context),
    policy_trace: answered.code === 'policy_violation' ? await traceOf(answered.id, context) : null,
  };
};

/** Null if a reset has deleted it. */
async function traceOf(requestId: string, context: ControlContext): Promise<PolicyTrace | null> {
  try {
    return await policyTrace(requestId, context);
  } catch (error) {
    if (error instanceof ApiError && error.code === 'not_found') return null;
    throw error;
  }
}
