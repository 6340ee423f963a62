import { proposeIntent } from '../../domain/requests/intents/propose-intent.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'createPolicyRuleIntent'> = (input, context) =>
  proposeIntent(context, 'createPolicyRule', input);
