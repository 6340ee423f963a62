import { deleteConditionSet as remove } from '../../domain/access/condition-sets/change-condition-set.ts';
import type { Handler } from '../../operation-context.ts';

export const deleteConditionSet: Handler<'deleteConditionSet'> = async ({ path }, context) => {
  await remove(context, path.condition_set_id);
  return { success: true };
};
