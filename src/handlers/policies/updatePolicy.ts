import { policyView } from '../../domain/access/policies/policy-view.ts';
import { updatePolicy as update } from '../../domain/access/policies/update-policy.ts';
import type { Handler } from '../../operation-context.ts';

export const updatePolicy: Handler<'updatePolicy'> = async ({ path, body }, context) =>
  policyView(await update(context, path.policy_id, body));
