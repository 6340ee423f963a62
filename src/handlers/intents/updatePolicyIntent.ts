import { proposeIntent } from '../../domain/requests/intents/propose-intent.ts';
import type { Handler } from '../../services.ts';

export const updatePolicyIntent: Handler<'updatePolicyIntent'> = (input, context) =>
  proposeIntent(context, 'updatePolicy', input);
