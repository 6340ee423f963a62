import * as conditionSet from '../domain/access/condition-sets/condition-set.ts';
import { conditionSetView, findConditionSet } from '../domain/access/condition-sets/condition-set.ts';
import * as conditionSetItems from '../domain/access/condition-sets/condition-set-items.ts';
import { findConditionSetItem } from '../domain/access/condition-sets/condition-set-items.ts';
import type { Handler } from '../ports/operation-context.ts';

export const listConditionSets: Handler<'listConditionSets'> = async ({ query }, context) => {
  const { sets, nextCursor } = await conditionSet.listConditionSets(context, query);
  return { data: sets.map(conditionSetView), next_cursor: nextCursor };
};

export const createConditionSet: Handler<'createConditionSet'> = async ({ body }, context) =>
  conditionSetView(await conditionSet.createConditionSet(context, body));

export const deleteConditionSet: Handler<'deleteConditionSet'> = async ({ path }, context) => {
  await conditionSet.deleteConditionSet(context, path.condition_set_id);
  return { success: true };
};

export const getConditionSet: Handler<'getConditionSet'> = async ({ path }, context) =>
  conditionSetView(await findConditionSet(context, path.condition_set_id));

export const updateConditionSet: Handler<'updateConditionSet'> = async ({ path, body }, context) =>
  conditionSetView(await conditionSet.updateConditionSet(context, path.condition_set_id, body));

export const listConditionSetItems: Handler<'listConditionSetItems'> = async ({ path, query }, context) => {
  const { items, nextCursor } = await conditionSetItems.listConditionSetItems(
    context,
    path.condition_set_id,
    query,
  );
  return { items, next_cursor: nextCursor };
};

export const addConditionSetItems: Handler<'addConditionSetItems'> = ({ path, body }, context) =>
  conditionSetItems.addConditionSetItems(context, path.condition_set_id, body);

export const replaceConditionSetItems: Handler<'replaceConditionSetItems'> = ({ path, body }, context) =>
  conditionSetItems.replaceConditionSetItems(context, path.condition_set_id, body);

export const deleteConditionSetItem: Handler<'deleteConditionSetItem'> = async ({ path }, context) => {
  await conditionSetItems.deleteConditionSetItem(context, path.condition_set_id, path.condition_set_item_id);
  return { success: true };
};

export const getConditionSetItem: Handler<'getConditionSetItem'> = ({ path }, context) =>
  findConditionSetItem(context, path.condition_set_id, path.condition_set_item_id);
