import { invalidQuery, notFound } from '../../../errors.ts';
import type { ConditionSet } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { findPage } from '../../../storage/find-page.ts';
import { lockForUpdate } from '../../../storage/locks.ts';
import { ConditionSetEntity, type StoredConditionSet } from './condition-set.entity.ts';

export type ConditionSetContext = Pick<OperationContext, 'app' | 'em'>;

const MAX_PAGE = 100;

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
export async function listConditionSetsOfIds(
  { app, em }: ConditionSetContext,
  ids: readonly string[],
): Promise<StoredConditionSet[]> {
  if (ids.length === 0) return [];
  return em.find(ConditionSetEntity, { id: { $in: [...ids] }, appId: app.id });
}

/**
 * One page of the app's condition sets, newest first.
 *
 * @param page `limit` is 1 to 100, 100 when left out.
 * @throws ApiError invalid_data for a cursor of no condition set.
 */
export async function listConditionSets(
  { app, em }: ConditionSetContext,
  { cursor, limit = MAX_PAGE }: { cursor?: string | undefined; limit?: number | undefined },
): Promise<{ sets: StoredConditionSet[]; nextCursor: string | null }> {
  const after =
    cursor === undefined ? undefined : await em.findOne(ConditionSetEntity, { id: cursor, appId: app.id });
  if (after === null) throw invalidQuery('cursor', 'expected the `next_cursor` of a previous page');
  const { page, nextCursor } = await findPage(em, ConditionSetEntity, { appId: app.id }, { after, limit });
  return { sets: page, nextCursor };
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
