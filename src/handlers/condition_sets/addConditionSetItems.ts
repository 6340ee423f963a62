import { addConditionSetItems } from '../../domain/access/condition-sets/condition-set-items.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'addConditionSetItems'> = ({ path, body }, context) =>
  addConditionSetItems(context, path.condition_set_id, body);
