import { createConditionSet } from '../../domain/access/condition-sets/change-condition-set.ts';
import { conditionSetView } from '../../domain/access/condition-sets/find-condition-set.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'createConditionSet'> = async ({ body }, context) =>
  conditionSetView(await createConditionSet(context, body));
