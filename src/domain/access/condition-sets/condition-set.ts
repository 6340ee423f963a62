import { invalidField, invalidQuery, notFound } from '../../../errors.ts';
import type {
  ConditionSet,
  ConditionSetItem,
  ConditionSetItemsRequest,
  CreateConditionSetRequest,
  UpdateConditionSetRequest,
} from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { findPage } from '../../../storage/find-page.ts';
import { lockForUpdate } from '../../../storage/locks.ts';
import { containsText } from '../../../storage/sql-functions.ts';
import { dismissIntentsAbout } from '../../base/resource-changes/dismiss-intents.ts';
import { resolveOwner } from '../key-quorums/resolve-owner.ts';
import { requireAuthorization } from '../owners/require-authorization.ts';
import {
  ConditionSetEntity,
  ConditionSetItemEntity,
  type StoredConditionSet,
  type StoredConditionSetItem,
} from './condition-set.entity.ts';

type ConditionSetContext = Pick<OperationContext, 'app' | 'em'>;

const MAX_PAGE = 100;

/**
 * Finds a condition set of the app.
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

/** Lists the app's condition sets with these ids. */
export async function listConditionSetsOfIds(
  { app, em }: ConditionSetContext,
  ids: readonly string[],
): Promise<StoredConditionSet[]> {
  if (ids.length === 0) return [];
  return em.find(ConditionSetEntity, { id: { $in: [...ids] }, appId: app.id });
}

/**
 * Lists one page of the app's condition sets, newest first.
 *
 * @param cursor the `nextCursor` of the previous page.
 * @param limit 1 to 100, by default 100.
 * @throws ApiError invalid_data for a cursor that is not a condition set of the app.
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
 * Finds a condition set that the caller is about to change, and locks it until the transaction ends.
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

/** Converts a condition set to wire form. */
export function conditionSetView({ id, name, ownerId, createdAtMs }: StoredConditionSet): ConditionSet {
  return { id, name, owner_id: ownerId, created_at: createdAtMs };
}

/**
 * Creates an empty condition set.
 *
 * @throws ApiError invalid_data for an owner that does not exist.
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
 * @throws ApiError not_found, invalid_data, and what `requireAuthorization` throws.
 */
export async function updateConditionSet(
  context: OperationContext,
  id: string,
  change: UpdateConditionSetRequest,
): Promise<StoredConditionSet> {
  const set = await findConditionSetForUpdate(context, id);
  await requireAuthorization(context, { ownerId: set.ownerId });
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
 * Deletes a condition set with its items. Conditions that refer to it become false.
 *
 * @throws ApiError not_found, and what `requireAuthorization` throws.
 */
export async function deleteConditionSet(context: OperationContext, id: string): Promise<void> {
  const set = await findConditionSetForUpdate(context, id);
  await requireAuthorization(context, { ownerId: set.ownerId });
  await context.em.nativeDelete(ConditionSetItemEntity, { conditionSetId: id });
  await context.em.remove(set).flush();
  await dismissIntentsAbout(context, { resource: 'condition set', id, change: 'deleted' });
}

function itemView({ id, conditionSetId, value, createdAtMs }: StoredConditionSetItem): ConditionSetItem {
  return { id, condition_set_id: conditionSetId, value, created_at: createdAtMs };
}

/**
 * Refuses values that a text column cannot store.
 *
 * @throws ApiError invalid_data that names the value.
 */
export function requireText(input: ConditionSetItemsRequest): void {
  for (const [index, { value }] of input.entries()) {
    if (!value.isWellFormed()) {
      throw invalidField(`/${index}/value`, 'must be text without lone surrogates');
    }
  }
}

/**
 * Adds the missing values to a set. Returns the items of all given values, in their order.
 *
 * The caller has locked the set, so no other transaction adds the same value concurrently.
 */
async function putItems(
  context: OperationContext,
  setId: string,
  input: ConditionSetItemsRequest,
): Promise<ConditionSetItem[]> {
  requireText(input);
  const { em } = context;
  const values = [...new Set(input.map(({ value }) => value))];
  const known = await em.find(ConditionSetItemEntity, { conditionSetId: setId, value: { $in: values } });
  const byValue = new Map(known.map((item) => [item.value, item]));
  const items = values.map(
    (value) =>
      byValue.get(value) ??
      em.create(ConditionSetItemEntity, {
        id: context.ids.cuid2(),
        conditionSetId: setId,
        value,
        valueLower: value.toLowerCase(),
        createdAtMs: context.nowMs,
      }),
  );
  await em.flush();
  await dismissIntentsAbout(context, { resource: 'condition set', id: setId, change: 'changed' });
  return items.map(itemView);
}

/**
 * Adds values to a condition set. Requires the owner's authorization. Values that are already in the set keep their
 * items.
 *
 * @throws ApiError not_found, invalid_data, and what `requireAuthorization` throws.
 */
export async function addConditionSetItems(
  context: OperationContext,
  setId: string,
  input: ConditionSetItemsRequest,
): Promise<ConditionSetItem[]> {
  const set = await findConditionSetForUpdate(context, setId);
  await requireAuthorization(context, { ownerId: set.ownerId });
  return putItems(context, setId, input);
}

/**
 * Replaces all values of a condition set. Requires the owner's authorization.
 *
 * @throws ApiError not_found, invalid_data, and what `requireAuthorization` throws.
 */
export async function replaceConditionSetItems(
  context: OperationContext,
  setId: string,
  input: ConditionSetItemsRequest,
): Promise<ConditionSetItem[]> {
  const set = await findConditionSetForUpdate(context, setId);
  await requireAuthorization(context, { ownerId: set.ownerId });
  await context.em.nativeDelete(ConditionSetItemEntity, { conditionSetId: setId });
  return putItems(context, setId, input);
}

/**
 * Finds one item of a condition set by its id.
 *
 * @throws ApiError not_found
 */
export async function findConditionSetItem(
  context: ConditionSetContext,
  setId: string,
  itemId: string,
): Promise<ConditionSetItem> {
  await findConditionSet(context, setId);
  return itemView(await findItem(context, setId, itemId));
}

/**
 * Removes one item from a condition set. Requires the owner's authorization.
 *
 * @throws ApiError not_found, and what `requireAuthorization` throws.
 */
export async function deleteConditionSetItem(
  context: OperationContext,
  setId: string,
  itemId: string,
): Promise<void> {
  const set = await findConditionSetForUpdate(context, setId);
  await requireAuthorization(context, { ownerId: set.ownerId });
  await context.em.remove(await findItem(context, setId, itemId)).flush();
  await dismissIntentsAbout(context, { resource: 'condition set', id: setId, change: 'changed' });
}

/**
 * Lists one page of a condition set's items, newest first. With `query`, only items whose value contains it.
 *
 * @throws ApiError not_found; invalid_data for a cursor that is not an item of the set.
 */
export async function listConditionSetItems(
  context: ConditionSetContext,
  setId: string,
  options: { cursor?: string | undefined; limit?: number | undefined; query?: string | undefined },
): Promise<{ items: ConditionSetItem[]; nextCursor: string | null }> {
  await findConditionSet(context, setId);
  const { cursor, query, limit = MAX_PAGE } = options;
  const after = cursor === undefined ? undefined : await getItem(context, setId, cursor);
  if (after === null) throw invalidQuery('cursor', 'expected the `next_cursor` of a previous page');
  const { page, nextCursor } = await findPage(
    context.em,
    ConditionSetItemEntity,
    { conditionSetId: setId, ...(query === undefined ? {} : containsText('value_lower', query)) },
    { after, limit },
  );
  return { items: page.map(itemView), nextCursor };
}

async function findItem(
  context: ConditionSetContext,
  setId: string,
  itemId: string,
): Promise<StoredConditionSetItem> {
  const item = await getItem(context, setId, itemId);
  if (item === null) throw notFound('Condition set item');
  return item;
}

function getItem(
  { em }: ConditionSetContext,
  setId: string,
  itemId: string,
): Promise<StoredConditionSetItem | null> {
  return em.findOne(ConditionSetItemEntity, { id: itemId, conditionSetId: setId });
}
