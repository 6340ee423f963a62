import { listConditionSetItems as list } from '../../domain/access/condition-sets/condition-set-items.ts';
import type { Handler } from '../../operation-context.ts';

export const listConditionSetItems: Handler<'listConditionSetItems'> = async ({ path, query }, context) => {
  const { items, nextCursor } = await list(context, path.condition_set_id, query);
  return { items, next_cursor: nextCursor };
};
