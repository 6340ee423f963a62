import {
  findPolicy,
  listPolicies as listPoliciesVerb,
  policySummaryView,
  policyView,
} from '../domain/access/policies/find-policy.ts';
import {
  createPolicyRule as createPolicyRuleVerb,
  createPolicy as createPolicyVerb,
  deletePolicyRule as deletePolicyRuleVerb,
  deletePolicy as deletePolicyVerb,
  findPolicyRule,
  updatePolicyRule as updatePolicyRuleVerb,
  updatePolicy as updatePolicyVerb,
} from '../domain/access/policies/policy.ts';
import type { Handler } from '../ports/operation-context.ts';

export const listPolicies: Handler<'listPolicies'> = async ({ query }, context) => {
  const { policies, nextCursor } = await listPoliciesVerb(context, query);
  return { data: policies.map(policySummaryView), next_cursor: nextCursor };
};

export const createPolicy: Handler<'createPolicy'> = async ({ body }, context) =>
  policyView(await createPolicyVerb(context, body));

export const deletePolicy: Handler<'deletePolicy'> = async ({ path }, context) => {
  await deletePolicyVerb(context, path.policy_id);
  return { success: true };
};

export const getPolicy: Handler<'getPolicy'> = async ({ path }, context) =>
  policyView(await findPolicy(context, path.policy_id));

export const updatePolicy: Handler<'updatePolicy'> = async ({ path, body }, context) =>
  policyView(await updatePolicyVerb(context, path.policy_id, body));

export const createPolicyRule: Handler<'createPolicyRule'> = ({ path, body }, context) =>
  createPolicyRuleVerb(context, path.policy_id, body);

export const deletePolicyRule: Handler<'deletePolicyRule'> = async ({ path }, context) => {
  await deletePolicyRuleVerb(context, path.policy_id, path.rule_id);
  return { success: true };
};

export const getPolicyRule: Handler<'getPolicyRule'> = ({ path }, context) =>
  findPolicyRule(context, path.policy_id, path.rule_id);

export const updatePolicyRule: Handler<'updatePolicyRule'> = ({ path, body }, context) =>
  updatePolicyRuleVerb(context, path.policy_id, path.rule_id, body);
