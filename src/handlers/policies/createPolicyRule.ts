import { createPolicyRule } from '../../domain/access/policies/policy-rules.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'createPolicyRule'> = ({ path, body }, context) =>
  createPolicyRule(context, path.policy_id, body);
