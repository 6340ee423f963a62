import { policyView } from '../../domain/access/policies/policy-view.ts';
import { updatePolicy } from '../../domain/access/policies/update-policy.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'updatePolicy'> = async ({ path, body }, context) =>
  policyView(await updatePolicy(context, path.policy_id, body));
