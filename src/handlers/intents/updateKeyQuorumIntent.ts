import { proposeIntent } from '../../domain/requests/intents/propose-intent.ts';
import type { Handler } from '../../services.ts';

export const updateKeyQuorumIntent: Handler<'updateKeyQuorumIntent'> = (input, context) =>
  proposeIntent(context, 'updateKeyQuorum', input);
