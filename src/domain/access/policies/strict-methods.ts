import type { OperationContext } from '../../../operation-context.ts';
import type { PolicyAction } from '../../../policy/action.ts';
import { strictly } from '../../../policy/strict.ts';
import { readSafeguards } from '../../base/safeguards/read-safeguards.ts';

/** The action as the app's policies evaluate it: strictly, where its safeguard `strict_methods` says so. */
export async function actionToEvaluate(
  context: Pick<OperationContext, 'app' | 'em' | 'safeguards'>,
  action: PolicyAction,
): Promise<PolicyAction> {
  const strict = strictly(action);
  if (strict === action) return action;
  const { strict_methods: isStrict } = await readSafeguards(context);
  return isStrict ? strict : action;
}
