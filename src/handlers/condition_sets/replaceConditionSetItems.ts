import { replaceConditionSetItems } from '../../domain/access/condition-sets/condition-set-items.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'replaceConditionSetItems'> = ({ path, body }, context) =>
  replaceConditionSetItems(context, path.condition_set_id, body);
