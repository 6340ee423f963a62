import { addConditionSetItems as add } from '../../domain/access/condition-sets/condition-set-items.ts';
import type { Handler } from '../../operation-context.ts';

export const addConditionSetItems: Handler<'addConditionSetItems'> = ({ path, body }, context) =>
  add(context, path.condition_set_id, body);
