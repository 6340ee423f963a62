import { findConditionSetItem } from '../../domain/access/condition-sets/condition-set-items.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'getConditionSetItem'> = ({ path }, context) =>
  findConditionSetItem(context, path.condition_set_id, path.condition_set_item_id);
