import { invalidField } from '../../../errors.ts';
import type { CreateConditionSetRequest, UpdateConditionSetRequest } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { dismissIntentsAbout } from '../../base/resource-changes/dismiss-intents.ts';
import { resolveOwner } from '../key-quorums/resolve-owner.ts';
import { requireOwner } from '../owners/require-owner.ts';
import { ConditionSetEntity, type StoredConditionSet } from './condition-set.entity.ts';
import { ConditionSetItemEntity } from './condition-set-item.entity.ts';
import { findConditionSetForUpdate } from './find-condition-set.ts';

/**
 * Creates an empty condition set.
 *
 * @throws ApiError invalid_data for a missing owner.
 */
export async function createConditionSet(
  context: OperationContext,
  input: CreateConditionSetRequest,
): Promise<StoredConditionSet> {
  const set = context.em.create(ConditionSetEntity, {
    id: context.ids.cuid2(),
    appId: context.app.id,
    name: input.name,
    ownerId: (await resolveOwner(context, input)) ?? null,
    createdAtMs: context.nowMs,
  });
  await context.em.flush();
  return set;
}

/**
 * Renames a condition set or changes its owner. Requires the current owner's authorization.
 *
 * @throws ApiError not_found, invalid_data, and what `requireOwner` throws.
 */
export async function updateConditionSet(
  context: OperationContext,
  id: string,
  change: UpdateConditionSetRequest,
): Promise<StoredConditionSet> {
  const set = await findConditionSetForUpdate(context, id);
  await requireOwner(context, { ownerId: set.ownerId });
  if (Object.values(change).every((value) => value === undefined)) {
    throw invalidField('', 'expected at least one field');
  }
  const ownerId = await resolveOwner(context, change);
  set.name = change.name ?? set.name;
  if (ownerId !== undefined) set.ownerId = ownerId;
  await context.em.flush();
  await dismissIntentsAbout(context, { resource: 'condition set', id, change: 'changed' });
  return set;
}

/**
 * Deletes a condition set with its items; conditions that name it are false from then on.
 *
 * @throws ApiError not_found, and what `requireOwner` throws.
 */
export async function deleteConditionSet(context: OperationContext, id: string): Promise<void> {
  const set = await findConditionSetForUpdate(context, id);
  await requireOwner(context, { ownerId: set.ownerId });
  await context.em.nativeDelete(ConditionSetItemEntity, { conditionSetId: id });
  await context.em.remove(set).flush();
  await dismissIntentsAbout(context, { resource: 'condition set', id, change: 'deleted' });
}
