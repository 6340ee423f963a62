import { deletePolicyRule as remove } from '../../domain/access/policies/policy-rules.ts';
import type { Handler } from '../../operation-context.ts';

export const deletePolicyRule: Handler<'deletePolicyRule'> = async ({ path }, context) => {
  await remove(context, path.policy_id, path.rule_id);
  return { success: true };
};
