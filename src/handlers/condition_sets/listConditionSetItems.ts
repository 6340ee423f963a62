import { listConditionSetItems } from '../../domain/access/condition-sets/condition-set-items.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'listConditionSetItems'> = async ({ path, query }, context) => {
  const { items, nextCursor } = await listConditionSetItems(context, path.condition_set_id, query);
  return { items, next_cursor: nextCursor };
};
