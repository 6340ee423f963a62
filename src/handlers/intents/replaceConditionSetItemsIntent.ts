import { notImplemented } from '../../errors.ts';
import type { Handler } from '../../services.ts';

export const replaceConditionSetItemsIntent: Handler<'replaceConditionSetItemsIntent'> = async () => {
  throw notImplemented('replaceConditionSetItemsIntent');
};
