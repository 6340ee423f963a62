import type { OperationContext } from '../../../operation-context.ts';
import { findIntent } from './find-intent.ts';
import { type AnyInput, proposalOf } from './proposals.ts';

/**
 * Asks chains what the request of an intent will need, in case that the signature that has come is the last one: so that
 * the transaction which carries it out waits for no chain. Undefined for requests that need none.
 *
 * @throws what the proposed operation's own preparation throws; its verb throws it again when it takes the plan.
 */
export async function prepareProposed(context: OperationContext, intentId: string): Promise<unknown> {
  const {
    status,
    operation_id: operationId,
    path_parameters: path,
    body,
  } = await findIntent(context, intentId);
  const { prepare } = proposalOf(operationId);
  if (status !== 'pending' || prepare === undefined) return undefined;
  const input = {
    path: JSON.parse(path) as AnyInput['path'],
    body: body === null ? undefined : JSON.parse(body),
  };
  return prepare(context, input);
}
