import { proposeIntent } from '../../domain/requests/intents/propose-intent.ts';
import type { Handler } from '../../operation-context.ts';

export const updatePolicyRuleIntent: Handler<'updatePolicyRuleIntent'> = (input, context) =>
  proposeIntent(context, 'updatePolicyRule', input);
