import { deletePolicyRule } from '../../domain/access/policies/policy-rules.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'deletePolicyRule'> = async ({ path }, context) => {
  await deletePolicyRule(context, path.policy_id, path.rule_id);
  return { success: true };
};
