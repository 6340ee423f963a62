import { updateConditionSet } from '../../domain/access/condition-sets/change-condition-set.ts';
import { conditionSetView } from '../../domain/access/condition-sets/find-condition-set.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'updateConditionSet'> = async ({ path, body }, context) =>
  conditionSetView(await updateConditionSet(context, path.condition_set_id, body));
