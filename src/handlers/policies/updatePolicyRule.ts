import { updatePolicyRule } from '../../domain/access/policies/policy-rules.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'updatePolicyRule'> = ({ path, body }, context) =>
  updatePolicyRule(context, path.policy_id, path.rule_id, body);
