import { authorizeIntent as authorize } from '../../domain/requests/intents/authorize-intent.ts';
import type { Handler } from '../../operation-context.ts';

export const authorizeIntent: Handler<'authorizeIntent'> = ({ path, body }, context) =>
  authorize(context, path.intent_id, body);
