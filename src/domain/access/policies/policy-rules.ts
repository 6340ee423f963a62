import { notFound } from '../../../errors.ts';
import type { PolicyRuleRequest, PolicyRuleResponse } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { requireOwner } from '../owners/require-owner.ts';
import { checkPolicySize, checkRules } from './check-rules.ts';
import { withId } from './create-policy.ts';
import { findPolicy, findPolicyForUpdate, type StoredPolicy } from './find-policy.ts';
import { requirePartsOfOwner } from './policy-parts.ts';
import { storePolicy } from './update-policy.ts';

/** CHOICE: where a rule is the whole body, JSON pointers start at the body's root. */
const AT_ROOT = () => '';
const fromRoot = (_: number, place: string): string => place;

function requireRule(policy: StoredPolicy, ruleId: string): PolicyRuleResponse {
  const rule = policy.rules.find(({ id }) => id === ruleId);
  if (rule === undefined) throw notFound('Rule');
  return rule;
}

/**
 * One rule of a policy.
 *
 * @throws ApiError not_found
 */
export async function findPolicyRule(
  context: Pick<OperationContext, 'app' | 'em'>,
  policyId: string,
  ruleId: string,
): Promise<PolicyRuleResponse> {
  return requireRule(await findPolicy(context, policyId), ruleId);
}

/**
 * Appends a rule to a policy. Requires the owner's authorization.
 *
 * @throws ApiError not_found, invalid_policy_format, and what `requireOwner` and `requirePartsOfOwner` throw.
 */
export async function createPolicyRule(
  context: OperationContext,
  policyId: string,
  input: PolicyRuleRequest,
): Promise<PolicyRuleResponse> {
  const policy = await findPolicyForUpdate(context, policyId);
  await requireOwner(context, { ownerId: policy.ownerId });
  await checkRules(context, [input], policy.chainType, AT_ROOT);
  await requirePartsOfOwner(context, policy.ownerId, [input], fromRoot);
  const rule = withId(context.ids.cuid2(), input);
  const rules = [...policy.rules, rule];
  checkPolicySize(rules);
  await storePolicy(context, policy, { rules });
  return rule;
}

/**
 * Replaces a rule; it keeps its id and position.
 *
 * @throws ApiError not_found, invalid_policy_format, and what `requireOwner` and `requirePartsOfOwner` throw.
 */
export async function updatePolicyRule(
  context: OperationContext,
  policyId: string,
  ruleId: string,
  input: PolicyRuleRequest,
): Promise<PolicyRuleResponse> {
  const policy = await findPolicyForUpdate(context, policyId);
  await requireOwner(context, { ownerId: policy.ownerId });
  requireRule(policy, ruleId);
  await checkRules(context, [input], policy.chainType, AT_ROOT);
  await requirePartsOfOwner(context, policy.ownerId, [input], fromRoot);
  const rule = withId(ruleId, input);
  const rules = policy.rules.map((other) => (other.id === ruleId ? rule : other));
  checkPolicySize(rules);
  await storePolicy(context, policy, { rules });
  return rule;
}

/**
 * Removes a rule.
 *
 * @throws ApiError not_found, and what `requireOwner` throws.
 */
export async function deletePolicyRule(
  context: OperationContext,
  policyId: string,
  ruleId: string,
): Promise<void> {
  const policy = await findPolicyForUpdate(context, policyId);
  await requireOwner(context, { ownerId: policy.ownerId });
  requireRule(policy, ruleId);
  await storePolicy(context, policy, { rules: policy.rules.filter(({ id }) => id !== ruleId) });
}
