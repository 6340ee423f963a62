import { updateConditionSet as update } from '../../domain/access/condition-sets/change-condition-set.ts';
import { conditionSetView } from '../../domain/access/condition-sets/find-condition-set.ts';
import type { Handler } from '../../operation-context.ts';

export const updateConditionSet: Handler<'updateConditionSet'> = async ({ path, body }, context) =>
  conditionSetView(await update(context, path.condition_set_id, body));
