import { replaceConditionSetItems as replace } from '../../domain/access/condition-sets/condition-set-items.ts';
import type { Handler } from '../../operation-context.ts';

export const replaceConditionSetItems: Handler<'replaceConditionSetItems'> = ({ path, body }, context) =>
  replace(context, path.condition_set_id, body);
