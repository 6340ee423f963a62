import type { PlanContext } from '../../../operation-context.ts';
import { findIntent } from './find-intent.ts';
import { type AnyInput, proposalOf } from './proposals.ts';

/**
 * Runs the preparation of an intent's request, in case this signature is the last one needed.
 *
 * Result: what the `prepare` of the intent's proposal found, for the `run` of the same proposal, where the two are
 * typed; undefined for a request that needs no preparation.
 *
 * @throws what the proposed operation's own preparation throws.
 */
export async function prepareProposed(context: PlanContext, intentId: string): Promise<unknown> {
  const {
    status,
    operation_id: operationId,
    path_parameters: path,
    body,
  } = await findIntent(context, intentId);
  const proposal = proposalOf(operationId);
  if (status !== 'pending' || proposal.prepare === undefined) return undefined;
  const input = {
    path: JSON.parse(path) as AnyInput['path'],
    body: body === null ? undefined : JSON.parse(body),
  };
  return proposal.prepare(context, input);
}
