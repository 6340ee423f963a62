import {
  addConditionSetItems as addConditionSetItemsVerb,
  conditionSetView,
  createConditionSet as createConditionSetVerb,
  deleteConditionSetItem as deleteConditionSetItemVerb,
  deleteConditionSet as deleteConditionSetVerb,
  findConditionSet,
  findConditionSetItem,
  listConditionSetItems as listConditionSetItemsVerb,
  listConditionSets as listConditionSetsVerb,
  replaceConditionSetItems as replaceConditionSetItemsVerb,
  updateConditionSet as updateConditionSetVerb,
} from '../domain/access/condition-sets/condition-set.ts';
import type { Handler } from '../ports/operation-context.ts';

export const listConditionSets: Handler<'listConditionSets'> = async ({ query }, context) => {
  const { sets, nextCursor } = await listConditionSetsVerb(context, query);
  return { data: sets.map(conditionSetView), next_cursor: nextCursor };
};

export const createConditionSet: Handler<'createConditionSet'> = async ({ body }, context) =>
  conditionSetView(await createConditionSetVerb(context, body));

export const deleteConditionSet: Handler<'deleteConditionSet'> = async ({ path }, context) => {
  await deleteConditionSetVerb(context, path.condition_set_id);
  return { success: true };
};

export const getConditionSet: Handler<'getConditionSet'> = async ({ path }, context) =>
  conditionSetView(await findConditionSet(context, path.condition_set_id));

export const updateConditionSet: Handler<'updateConditionSet'> = async ({ path, body }, context) =>
  conditionSetView(await updateConditionSetVerb(context, path.condition_set_id, body));

export const listConditionSetItems: Handler<'listConditionSetItems'> = async ({ path, query }, context) => {
  const { items, nextCursor } = await listConditionSetItemsVerb(context, path.condition_set_id, query);
  return { items, next_cursor: nextCursor };
};

export const addConditionSetItems: Handler<'addConditionSetItems'> = ({ path, body }, context) =>
  addConditionSetItemsVerb(context, path.condition_set_id, body);

export const replaceConditionSetItems: Handler<'replaceConditionSetItems'> = ({ path, body }, context) =>
  replaceConditionSetItemsVerb(context, path.condition_set_id, body);

export const deleteConditionSetItem: Handler<'deleteConditionSetItem'> = async ({ path }, context) => {
  await deleteConditionSetItemVerb(context, path.condition_set_id, path.condition_set_item_id);
  return { success: true };
};

export const getConditionSetItem: Handler<'getConditionSetItem'> = ({ path }, context) =>
  findConditionSetItem(context, path.condition_set_id, path.condition_set_item_id);
