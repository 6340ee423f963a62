import * as findPolicyVerbs from '../domain/access/policies/find-policy.ts';
import { findPolicy, policySummaryView, policyView } from '../domain/access/policies/find-policy.ts';
import * as policy from '../domain/access/policies/policy.ts';
import { findPolicyRule } from '../domain/access/policies/policy.ts';
import type { Handler } from '../ports/operation-context.ts';

export const listPolicies: Handler<'listPolicies'> = async ({ query }, context) => {
  const { policies, nextCursor } = await findPolicyVerbs.listPolicies(context, query);
  return { data: policies.map(policySummaryView), next_cursor: nextCursor };
};

export const createPolicy: Handler<'createPolicy'> = async ({ body }, context) =>
  policyView(await policy.createPolicy(context, body));

export const deletePolicy: Handler<'deletePolicy'> = async ({ path }, context) => {
  await policy.deletePolicy(context, path.policy_id);
  return { success: true };
};

export const getPolicy: Handler<'getPolicy'> = async ({ path }, context) =>
  policyView(await findPolicy(context, path.policy_id));

export const updatePolicy: Handler<'updatePolicy'> = async ({ path, body }, context) =>
  policyView(await policy.updatePolicy(context, path.policy_id, body));

export const createPolicyRule: Handler<'createPolicyRule'> = ({ path, body }, context) =>
  policy.createPolicyRule(context, path.policy_id, body);

export const deletePolicyRule: Handler<'deletePolicyRule'> = async ({ path }, context) => {
  await policy.deletePolicyRule(context, path.policy_id, path.rule_id);
  return { success: true };
};

export const getPolicyRule: Handler<'getPolicyRule'> = ({ path }, context) =>
  findPolicyRule(context, path.policy_id, path.rule_id);

export const updatePolicyRule: Handler<'updatePolicyRule'> = ({ path, body }, context) =>
  policy.updatePolicyRule(context, path.policy_id, path.rule_id, body);
