import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const addConditionSetItemsIntent: Handler<'addConditionSetItemsIntent'> = async () => {
  throw notImplemented('addConditionSetItemsIntent');
};
