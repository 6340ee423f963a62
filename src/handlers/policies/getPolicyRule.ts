import { findPolicyRule } from '../../domain/access/policies/policy-rules.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'getPolicyRule'> = ({ path }, context) =>
  findPolicyRule(context, path.policy_id, path.rule_id);
