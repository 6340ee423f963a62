import { proposeIntent } from '../../domain/requests/intents/propose-intent.ts';
import type { Handler } from '../../operation-context.ts';

export const updatePolicyIntent: Handler<'updatePolicyIntent'> = (input, context) =>
  proposeIntent(context, 'updatePolicy', input);
