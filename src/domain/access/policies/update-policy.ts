import { invalidField } from '../../../errors.ts';
import type { PolicyRuleResponse, UpdatePolicyRequest } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { dismissIntentsAbout } from '../../base/resource-changes/dismiss-intents.ts';
import { resolveOwner } from '../key-quorums/resolve-owner.ts';
import { requireOwner } from '../owners/require-owner.ts';
import { checkRules } from './check-rules.ts';
import { documentOf, withIds } from './create-policy.ts';
import { findPolicyForUpdate, readPolicy, type StoredPolicy } from './find-policy.ts';
import { PolicyEntity } from './policy.entity.ts';
import { requirePartsAfterUpdate } from './policy-parts.ts';
import { changePolicySeal } from './policy-seals.ts';

/**
 * Updates a policy. Requires the owner's authorization. Given rules replace all existing ones, under new ids; a
 * `null` owner removes the owner.
 *
 * @throws ApiError not_found, invalid_data, invalid_policy_format, and what `requireOwner` throws.
 */
export async function updatePolicy(
  context: OperationContext,
  id: string,
  change: UpdatePolicyRequest,
): Promise<StoredPolicy> {
  const before = await findPolicyForUpdate(context, id);
  await requireOwner(context, { ownerId: before.ownerId });
  if (Object.values(change).every((value) => value === undefined)) {
    throw invalidField('', 'expected at least one field');
  }
  const ownerId = await resolveOwner(context, change);
  if (change.rules !== undefined) {
    await checkRules(context, change.rules, before.chainType, (index) => `/rules/${index}`);
  }
  await requirePartsAfterUpdate(context, before, change, ownerId);
  return storePolicy(context, before, {
    name: change.name ?? before.name,
    ownerId: ownerId === undefined ? before.ownerId : ownerId,
    rules: change.rules === undefined ? before.rules : withIds(context, change.rules),
  });
}

/** Stores a changed policy. Its cached compilation is no longer used, and pending intents about it are dismissed. */
export async function storePolicy(
  context: OperationContext,
  before: StoredPolicy,
  change: { name?: string; ownerId?: string | null; rules?: readonly PolicyRuleResponse[] },
): Promise<StoredPolicy> {
  const { em } = context;
  // Already loaded by `findPolicyForUpdate`.
  const policy = await em.findOneOrFail(PolicyEntity, { id: before.id });
  policy.name = change.name ?? policy.name;
  if (change.ownerId !== undefined) policy.ownerId = change.ownerId;
  if (change.rules !== undefined) Object.assign(policy, documentOf(change.rules));
  policy.revision += 1;
  await em.flush();
  await dismissIntentsAbout(context, { resource: 'policy', id: policy.id, change: 'changed' });
  const after = readPolicy(policy);
  await changePolicySeal(context, before, after);
  return after;
}
