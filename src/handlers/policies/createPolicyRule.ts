import { createPolicyRule as create } from '../../domain/access/policies/policy-rules.ts';
import type { Handler } from '../../operation-context.ts';

export const createPolicyRule: Handler<'createPolicyRule'> = ({ path, body }, context) =>
  create(context, path.policy_id, body);
