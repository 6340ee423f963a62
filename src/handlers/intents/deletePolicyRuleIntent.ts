import { proposeIntent } from '../../domain/requests/intents/propose-intent.ts';
import type { Handler } from '../../operation-context.ts';

export const deletePolicyRuleIntent: Handler<'deletePolicyRuleIntent'> = (input, context) =>
  proposeIntent(context, 'deletePolicyRule', input);
