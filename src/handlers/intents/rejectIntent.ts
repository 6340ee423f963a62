import { rejectIntent } from '../../domain/requests/intents/reject-intent.ts';
import type { Handler } from '../../operation-context.ts';

export const run: Handler<'rejectIntent'> = ({ path }, context) => rejectIntent(context, path.intent_id);
