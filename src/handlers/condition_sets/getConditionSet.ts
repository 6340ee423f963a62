import { conditionSetView, findConditionSet } from '../../domain/access/condition-sets/find-condition-set.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'getConditionSet'> = async ({ path }, context) =>
  conditionSetView(await findConditionSet(context, path.condition_set_id));
