import { invalidField } from '../../../errors.ts';
import type { PolicyRuleResponse, UpdatePolicyRequest } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { announceChange } from '../../base/resource-changes/announce-change.ts';
import type { Tables } from '../../tables.ts';
import { resolveOwner } from '../key-quorums/resolve-owner.ts';
import { requireOwner } from '../owners/require-owner.ts';
import { checkRules } from './check-rules.ts';
import { rulesColumns, withIds } from './create-policy.ts';
import { findPolicyForUpdate, type StoredPolicy } from './find-policy.ts';

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
  return storePolicy(context, before, {
    name: change.name ?? before.name,
    ownerId: ownerId === undefined ? before.ownerId : ownerId,
    rules: change.rules === undefined ? before.rules : withIds(context, change.rules),
  });
}

/** Stores a changed policy. Its cached compilation is no longer used, and pending intents about it are dismissed. */
export async function storePolicy(
  context: Pick<OperationContext, 'em' | 'nowMs' | 'proof'>,
  before: StoredPolicy,
  change: { name?: string; ownerId?: string | null; rules?: readonly PolicyRuleResponse[] },
): Promise<StoredPolicy> {
  const after: StoredPolicy = { ...before, ...change, revision: before.revision + 1 };
  await context.em
    .getKysely<Tables>()
    .updateTable('policies')
    .set({
      name: after.name,
      owner_id: after.ownerId,
      ...rulesColumns(after.rules),
      revision: after.revision,
    })
    .where('id', '=', after.id)
    .execute();
  await announceChange(context, { resource: 'policy', id: after.id, change: 'changed' });
  return after;
}
