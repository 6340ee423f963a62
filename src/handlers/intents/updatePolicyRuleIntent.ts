import { proposeIntent } from '../../domain/requests/intents/propose-intent.ts';
import type { Handler } from '../../services.ts';

export const updatePolicyRuleIntent: Handler<'updatePolicyRuleIntent'> = (input, context) =>
  proposeIntent(context, 'updatePolicyRule', input);
