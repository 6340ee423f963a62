import { notFound } from '../../../errors.ts';
import type { ConditionSet } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { lockForUpdate } from '../../../storage/locks.ts';
import { ConditionSetEntity, type StoredConditionSet } from './condition-set.entity.ts';

export type ConditionSetContext = Pick<OperationContext, 'app' | 'em'>;

/**
 * A condition set of the app.
 *
 * @throws ApiError not_found
 */
export async function findConditionSet(
  { app, em }: ConditionSetContext,
  id: string,
): Promise<StoredConditionSet> {
  const set = await em.findOne(ConditionSetEntity, { id, appId: app.id });
  if (set === null) throw notFound('Condition set');
  return set;
}

/** The app's condition sets among these ids. */
export async function listConditionSets(
  { app, em }: ConditionSetContext,
  ids: readonly string[],
): Promise<StoredConditionSet[]> {
  if (ids.length === 0) return [];
  return em.find(ConditionSetEntity, { id: { $in: [...ids] }, appId: app.id });
}

/**
 * A condition set that is about to change, locked until the transaction ends.
 *
 * @throws ApiError not_found
 */
export async function findConditionSetForUpdate(
  { app, em }: ConditionSetContext,
  id: string,
): Promise<StoredConditionSet> {
  const set = await em.findOne(ConditionSetEntity, { id, appId: app.id }, lockForUpdate);
  if (set === null) throw notFound('Condition set');
  return set;
}

/** A condition set in wire form. */
export function conditionSetView({ id, name, ownerId, createdAtMs }: StoredConditionSet): ConditionSet {
  return { id, name, owner_id: ownerId, created_at: createdAtMs };
}
