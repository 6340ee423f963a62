import { deleteConditionSetItem as remove } from '../../domain/access/condition-sets/condition-set-items.ts';
import type { Handler } from '../../operation-context.ts';

export const deleteConditionSetItem: Handler<'deleteConditionSetItem'> = async ({ path }, context) => {
  await remove(context, path.condition_set_id, path.condition_set_item_id);
  return { success: true };
};
