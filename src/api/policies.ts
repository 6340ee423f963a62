import * as createPolicyModule from '../domain/access/policies/create-policy.ts';
import * as deletePolicyModule from '../domain/access/policies/delete-policy.ts';
import * as findPolicyModule from '../domain/access/policies/find-policy.ts';
import { findPolicy } from '../domain/access/policies/find-policy.ts';
import * as policyRules from '../domain/access/policies/policy-rules.ts';
import { findPolicyRule } from '../domain/access/policies/policy-rules.ts';
import { policySummaryView, policyView } from '../domain/access/policies/policy-view.ts';
import * as updatePolicyModule from '../domain/access/policies/update-policy.ts';
import type { Handler } from '../operation-context.ts';

export const listPolicies: Handler<'listPolicies'> = async ({ query }, context) => {
  const { policies, nextCursor } = await findPolicyModule.listPolicies(context, query);
  return { data: policies.map(policySummaryView), next_cursor: nextCursor };
};

export const createPolicy: Handler<'createPolicy'> = async ({ body }, context) =>
  policyView(await createPolicyModule.createPolicy(context, body));

export const deletePolicy: Handler<'deletePolicy'> = async ({ path }, context) => {
  await deletePolicyModule.deletePolicy(context, path.policy_id);
  return { success: true };
};

export const getPolicy: Handler<'getPolicy'> = async ({ path }, context) =>
  policyView(await findPolicy(context, path.policy_id));

export const updatePolicy: Handler<'updatePolicy'> = async ({ path, body }, context) =>
  policyView(await updatePolicyModule.updatePolicy(context, path.policy_id, body));

export const createPolicyRule: Handler<'createPolicyRule'> = ({ path, body }, context) =>
  policyRules.createPolicyRule(context, path.policy_id, body);

export const deletePolicyRule: Handler<'deletePolicyRule'> = async ({ path }, context) => {
  await policyRules.deletePolicyRule(context, path.policy_id, path.rule_id);
  return { success: true };
};

export const getPolicyRule: Handler<'getPolicyRule'> = ({ path }, context) =>
  findPolicyRule(context, path.policy_id, path.rule_id);

export const updatePolicyRule: Handler<'updatePolicyRule'> = ({ path, body }, context) =>
  policyRules.updatePolicyRule(context, path.policy_id, path.rule_id, body);
