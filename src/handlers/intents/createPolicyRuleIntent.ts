import { proposeIntent } from '../../domain/requests/intents/propose-intent.ts';
import type { Handler } from '../../services.ts';

export const createPolicyRuleIntent: Handler<'createPolicyRuleIntent'> = (input, context) =>
  proposeIntent(context, 'createPolicyRule', input);
