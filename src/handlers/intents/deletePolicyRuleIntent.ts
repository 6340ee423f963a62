import { proposeIntent } from '../../domain/requests/intents/propose-intent.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'deletePolicyRuleIntent'> = (input, context) =>
  proposeIntent(context, 'deletePolicyRule', input);
