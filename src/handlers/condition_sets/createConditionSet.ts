import { createConditionSet as create } from '../../domain/access/condition-sets/change-condition-set.ts';
import { conditionSetView } from '../../domain/access/condition-sets/find-condition-set.ts';
import type { Handler } from '../../operation-context.ts';

export const createConditionSet: Handler<'createConditionSet'> = async ({ body }, context) =>
  conditionSetView(await create(context, body));
