import {
  conditionSetView,
  listConditionSets,
} from '../../domain/access/condition-sets/find-condition-set.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'listConditionSets'> = async ({ query }, context) => {
  const { sets, nextCursor } = await listConditionSets(context, query);
  return { data: sets.map(conditionSetView), next_cursor: nextCursor };
};
