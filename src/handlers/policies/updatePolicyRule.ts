import { updatePolicyRule as update } from '../../domain/access/policies/policy-rules.ts';
import type { Handler } from '../../operation-context.ts';

export const updatePolicyRule: Handler<'updatePolicyRule'> = ({ path, body }, context) =>
  update(context, path.policy_id, path.rule_id, body);
