import { invalidField } from '../../../errors.ts';
import type { CreateConditionSetRequest, UpdateConditionSetRequest } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { announceChange } from '../../base/resource-changes/announce-change.ts';
import type { Tables } from '../../tables.ts';
import { resolveOwner } from '../key-quorums/resolve-owner.ts';
import { requireOwner } from '../owners/require-owner.ts';
import { findConditionSetForUpdate, type StoredConditionSet } from './find-condition-set.ts';

/**
 * Makes an empty condition set.
 *
 * @throws ApiError invalid_data for a missing owner.
 */
export async function createConditionSet(
  context: OperationContext,
  input: CreateConditionSetRequest,
): Promise<StoredConditionSet> {
  const set: StoredConditionSet = {
    id: context.ids.cuid2(),
    name: input.name,
    owner_id: (await resolveOwner(context, input)) ?? null,
    created_at_ms: context.nowMs,
  };
  await context.em
    .getKysely<Tables>()
    .insertInto('condition_sets')
    .values({ ...set, app_id: context.app.id })
    .execute();
  return set;
}

/**
 * Renames a condition set or changes its owner, with the present owner's agreement.
 *
 * @throws ApiError not_found, invalid_data, and what `requireOwner` throws.
 */
export async function updateConditionSet(
  context: OperationContext,
  id: string,
  change: UpdateConditionSetRequest,
): Promise<StoredConditionSet> {
  const before = await findConditionSetForUpdate(context, id);
  await requireOwner(context, { ownerId: before.owner_id });
  if (Object.values(change).every((value) => value === undefined)) {
    throw invalidField('', 'expected at least one field');
  }
  const ownerId = await resolveOwner(context, change);
  const after = {
    ...before,
    name: change.name ?? before.name,
    owner_id: ownerId === undefined ? before.owner_id : ownerId,
  };
  await context.em
    .getKysely<Tables>()
    .updateTable('condition_sets')
    .set({ name: after.name, owner_id: after.owner_id })
    .where('id', '=', id)
    .execute();
  await announceChange(context, { resource: 'condition set', id, change: 'changed' });
  return after;
}

/**
 * Deletes a condition set with its items; conditions that name it are false from then on.
 *
 * @throws ApiError not_found, and what `requireOwner` throws.
 */
export async function deleteConditionSet(context: OperationContext, id: string): Promise<void> {
  const set = await findConditionSetForUpdate(context, id);
  await requireOwner(context, { ownerId: set.owner_id });
  const database = context.em.getKysely<Tables>();
  await database.deleteFrom('condition_set_items').where('condition_set_id', '=', id).execute();
  await database.deleteFrom('condition_sets').where('id', '=', id).execute();
  await announceChange(context, { resource: 'condition set', id, change: 'deleted' });
}
