import { proposeIntent } from '../../domain/requests/intents/propose-intent.ts';
import type { Handler } from '../../services.ts';

export const addConditionSetItemsIntent: Handler<'addConditionSetItemsIntent'> = (input, context) =>
  proposeIntent(context, 'addConditionSetItems', input);
