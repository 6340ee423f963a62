import { deleteConditionSetItem } from '../../domain/access/condition-sets/condition-set-items.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'deleteConditionSetItem'> = async ({ path }, context) => {
  await deleteConditionSetItem(context, path.condition_set_id, path.condition_set_item_id);
  return { success: true };
};
