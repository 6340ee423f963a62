import { findPolicy } from '../../domain/access/policies/find-policy.ts';
import { policyView } from '../../domain/access/policies/policy-view.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'getPolicy'> = async ({ path }, context) =>
  policyView(await findPolicy(context, path.policy_id));
