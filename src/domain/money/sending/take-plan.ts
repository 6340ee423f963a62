import type { OperationContext } from '../../../operation-context.ts';

/**
 * What the operation's preparation found, or what `ask` finds now where there was none.
 *
 * @throws what the preparation met: chains' refusals reach only who may act, so take the plan after `requireOwner`.
 */
export async function takePlan<T>(
  { plan }: Pick<OperationContext, 'plan'>,
  ask: () => Promise<T>,
): Promise<T> {
  if (plan === undefined) return ask();
  if ('refusal' in plan) throw plan.refusal;
  return plan.value as T;
}
