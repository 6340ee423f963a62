import { deleteConditionSet } from '../../domain/access/condition-sets/change-condition-set.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'deleteConditionSet'> = async ({ path }, context) => {
  await deleteConditionSet(context, path.condition_set_id);
  return { success: true };
};
